"""References to evaluations, as `compare`, its page and gates take them.

`fake-1` is a model version's latest evaluation, `fake-1@before` the one before that, `fake-1@2026-11-27` that of a
date; ten hexadecimal digits are the id of an evaluation, and `main.json` is a baseline file.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from eval_pipeline.core.errors import UsageError

LATEST, BEFORE = "latest", "before"
BASELINE_SUFFIX = ".json"
_BEGINNING = datetime.min.replace(tzinfo=UTC)
_ID = re.compile(r"[0-9a-f]{10}")


@dataclass(frozen=True, slots=True)
class KnownEvaluation:
    """An evaluation of a suite, as far as references choose it and names tell it from others.

    Attributes:
        is_full: whether it covers the whole suite.
        id: its id; empty if that is not known.
        begun_at: when its first run began; None if that is not known.
        is_newest: whether it is the newest evaluation of its date.
        prompt: name of the prompt that is part of the model version's name; empty for the suite's own.
        file: name of the baseline file that it comes from; empty for one of this home.
    """

    model_version: str
    eval_date: date
    is_full: bool = True
    id: str = ""
    begun_at: datetime | None = None
    is_newest: bool = True
    prompt: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True)
class ReadReference:
    """What a reference says.

    Attributes:
        text: as it was written.
        model_version: its model version; empty if it names an evaluation or a file.
        when: `LATEST`, `BEFORE` or a date.
        id: id of an evaluation.
        file: a baseline file.
    """

    text: str
    model_version: str = ""
    when: str | date = LATEST
    id: str = ""
    file: Path | None = None


def parse_reference(text: str, model_versions: Collection[str]) -> ReadReference:
    """Parses a reference; what is the name of a model version always means that model version.

    Raises:
        UsageError: it names no known model version and is nothing else either.
    """
    if text in model_versions:
        return ReadReference(text, text)
    name, at, when = text.rpartition("@")
    if at and name in model_versions:
        return ReadReference(text, name, when if when in {LATEST, BEFORE} else _day(text, when))
    if text.endswith(BASELINE_SUFFIX):
        return ReadReference(text, file=Path(text))
    if _ID.fullmatch(text):
        return ReadReference(text, id=text)
    raise UsageError(f"unknown model version '{name or text}'; known: {', '.join(sorted(model_versions)) or 'none'}")


def _day(text: str, when: str) -> date:
    try:
        return date.fromisoformat(when)
    except ValueError as error:
        raise UsageError(
            f"'{text}': after @ comes a date (YYYY-MM-DD), '{LATEST}' or '{BEFORE}', and not '{when}'"
        ) from error


def chosen(reference: ReadReference, known: Sequence[KnownEvaluation]) -> KnownEvaluation | None:
    """Returns the evaluation of one suite that a reference names; None if there is none.

    The latest is the newest full evaluation of a model version, or else the newest partial one; `before` is the one
    that would be the latest without it.
    """
    if reference.id:
        return next((found for found in known if found.id == reference.id), None)
    own = newest_first([found for found in known if found.model_version == reference.model_version])
    if isinstance(reference.when, date):
        return next((found for found in own if found.eval_date == reference.when), None)
    place = 1 if reference.when == BEFORE else 0
    return own[place] if len(own) > place else None


def newest_first(known: Sequence[KnownEvaluation]) -> list[KnownEvaluation]:
    """Returns evaluations, those of whole suites first, then by date and by when they began, the newest first."""
    return sorted(known, key=_order, reverse=True)


def _order(found: KnownEvaluation) -> tuple[bool, date, bool, datetime]:
    """Returns the key by which the latest evaluation is the greatest."""
    return found.is_full, found.eval_date, found.is_newest, found.begun_at or _BEGINNING


def names_of(known: Sequence[KnownEvaluation]) -> list[str]:
    """Returns a name for each evaluation that tells it from the others: the model version's where that is enough.

    Evaluations of the same model version are told apart by date, those of one date by their time in local time, and
    those of one minute by their ids. One that is not the newest of its date always has its time, and what comes from a
    file the file's name.
    """
    return [_name(found, [other for other in known if other is not found]) for found in known]


def _name(found: KnownEvaluation, others: Sequence[KnownEvaluation]) -> str:
    alike = [other for other in others if other.model_version == found.model_version]
    if not alike and not found.file and found.is_newest:
        return found.model_version
    mine, *rest = map(_details, (found, *alike))
    sizes = range(1 if found.is_newest else 2, len(mine))
    needed = next((size for size in sizes if mine[:size] not in [one[:size] for one in rest]), len(mine))
    return f"{found.model_version} ({' '.join(mine[:needed])})"


def _details(found: KnownEvaluation) -> list[str]:
    if found.file:
        return [found.file]
    return [part for part in (str(found.eval_date), time_of_day(found.begun_at), found.id) if part]


def time_of_day(moment: datetime | None) -> str:
    """Returns hours and minutes in local time; empty for None."""
    return "" if moment is None else f"{moment.astimezone():%H:%M}"
