"""References to evaluations, as `compare`, its page and gates take them.

`fake-1` is a model version's latest evaluation, `fake-1@before` the one before that, `fake-1@2026-11-27` that of a
date; ten hexadecimal digits are the id of an evaluation, and `main.json` is a baseline file.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from eval_pipeline.analysis.comparisons.evaluations import Evaluated
from eval_pipeline.core.errors import UsageError
from eval_pipeline.workspace.scope import FULL

LATEST, BEFORE = "latest", "before"
BASELINE_SUFFIX = ".json"
_ID = re.compile(r"[0-9a-f]{10}")
_BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Side:
    """One evaluation in a comparison.

    Attributes:
        evaluated: what is compared.
        id: the evaluation's id; empty if it is not known.
        begun_at: when its first run began; None if it is not known.
        is_newest: whether it is the newest evaluation of its date.
        prompt: name of the prompt that is part of the model version's name; empty for the suite's own.
    """

    evaluated: Evaluated
    id: str = ""
    begun_at: datetime | None = None
    is_newest: bool = True
    prompt: str = ""

    @property
    def model_version(self) -> str:
        """Name of the model version."""
        return self.evaluated.partition.model_version

    @property
    def suite(self) -> str:
        """Name of the suite."""
        return self.evaluated.partition.suite


@dataclass(frozen=True, slots=True)
class Reference:
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


def parse_reference(text: str, model_versions: Collection[str]) -> Reference:
    """Parses a reference; what is the name of a model version always means that model version.

    Raises:
        UsageError: it names no known model version and is nothing else either.
    """
    if text in model_versions:
        return Reference(text, text)
    name, at, when = text.rpartition("@")
    if at and name in model_versions:
        return Reference(text, name, when if when in {LATEST, BEFORE} else _day(text, when))
    if text.endswith(BASELINE_SUFFIX):
        return Reference(text, file=Path(text))
    if _ID.fullmatch(text):
        return Reference(text, id=text)
    raise UsageError(f"unknown model version '{name or text}'; known: {', '.join(sorted(model_versions)) or 'none'}")


def _day(text: str, when: str) -> date:
    try:
        return date.fromisoformat(when)
    except ValueError as error:
        raise UsageError(
            f"'{text}': after @ comes a date (YYYY-MM-DD), '{LATEST}' or '{BEFORE}', and not '{when}'"
        ) from error


def chosen(reference: Reference, sides: Sequence[Side]) -> Side | None:
    """Returns the evaluation of one suite that a reference names; None if there is none.

    The latest is the newest full evaluation of a model version, or else the newest partial one; `before` is the one
    that would be the latest without it.
    """
    if reference.id:
        return next((side for side in sides if side.id == reference.id), None)
    own = sorted((side for side in sides if side.model_version == reference.model_version), key=_order, reverse=True)
    if isinstance(reference.when, date):
        return next((side for side in own if side.evaluated.partition.eval_date == reference.when), None)
    place = 1 if reference.when == BEFORE else 0
    return own[place] if len(own) > place else None


def _order(side: Side) -> tuple[bool, date, bool, datetime]:
    """Returns the key by which the latest evaluation is the greatest."""
    found = side.evaluated
    return found.scope == FULL, found.partition.eval_date, side.is_newest, side.begun_at or _BEGINNING


def names_of(sides: Sequence[Side]) -> list[str]:
    """Returns a name for each evaluation that tells it from the others: the model version's where that is enough.

    Evaluations of the same model version are told apart by date, those of one date by their time in local time, and
    those of one minute by their ids. What comes from a file always has its name.
    """
    return [_name(side, [other for other in sides if other is not side]) for side in sides]


def _name(side: Side, others: Sequence[Side]) -> str:
    alike = [other for other in others if other.model_version == side.model_version]
    if not alike and side.evaluated.held is None:
        return side.model_version
    details = [_details(one) for one in (side, *alike)]
    mine, *rest = details
    sizes = range(1, len(mine))
    needed = next((size for size in sizes if mine[:size] not in [one[:size] for one in rest]), len(mine))
    return f"{side.model_version} ({' '.join(mine[:needed])})"


def _details(side: Side) -> list[str]:
    found = side.evaluated
    if found.held is not None:
        return [found.held.file]
    time = "" if side.begun_at is None else f"{side.begun_at.astimezone():%H:%M}"
    return [part for part in (str(found.partition.eval_date), time, side.id) if part]
