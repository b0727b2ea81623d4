"""Which evaluations are side by side: how an address names them, and how such an address is written."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date
from itertools import zip_longest

from eval_pipeline.analysis.comparisons.chosen.references import KnownEvaluation, chosen, names_of, parse_reference
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.places.links import NEWEST, compare_arguments, compare_path
from eval_pipeline.store.published.ddl import text
from eval_pipeline.view.evaluation import (
    StoredEvaluation,
    evaluation_at,
    known_place,
    listed,
    model_versions_of,
    places_of,
    scope_of,
)
from eval_pipeline.view.page import NotFoundError, Visit
from eval_pipeline.view.published import Row, StoreView
from eval_pipeline.workspace.asked.scope import FULL

LEAST, MOST = 2, 6
LETTERS = "ABCDEF"

_MOST_DAYS = 60
Dates = Mapping[str, Sequence[date]]


def sides_of(visit: Visit) -> list[StoredEvaluation]:
    """Returns the evaluations that the address names; the first one is the baseline.

    `a`, `b`, … are references as the command `compare` takes them. Otherwise `versions` lists model versions separated
    by commas. If it is given several times, as a form does, the older evaluation comes first. For a model version
    without a date in `eval_dates`, the evaluation used by comparisons is chosen; `evaluations` names earlier ones of a
    date by their ids.

    Raises:
        NotFoundError: the store does not have one of them.
        UsageError: they are not two to six different evaluations.
    """
    known = model_versions_of(visit.look, visit.suite)
    if not known:
        raise NotFoundError(f"the store has no evaluation of a suite '{visit.suite}'")
    references = [text for letter in LETTERS.lower() if (text := visit.argument(letter).strip())]
    chosen_ones = [one for one in visit.request.query_params.getlist("side") if one]
    if references:
        partitions = [_referenced(visit.look, visit.suite, text, known) for text in references]
    elif chosen_ones:  # from the page's own form, in which each choice names an evaluation
        partitions = [_of_choice(visit.look, visit.suite, one, known) for one in chosen_ones]
    else:
        partitions = _of_lists(visit, known)
    if len(set(partitions)) != len(partitions) or not LEAST <= len(partitions) <= MOST:
        raise UsageError(
            f"{LEAST} to {MOST} different evaluations can be shown side by side; choose them on the first page"
        )
    return [evaluation_at(visit.look, partition) for partition in partitions]


def the_only_one(visit: Visit) -> Partition | None:
    """Returns the evaluation that stands beside no other: an address without arguments, of a suite with one version."""
    known = model_versions_of(visit.look, visit.suite)
    if len(known) != 1 or visit.request.query_params:
        return None
    return _place(visit.look, visit.suite, (next(iter(known)), "", ""), known, _latest(visit.look, visit.suite))


def _of_lists(visit: Visit, known: Dates) -> list[Partition]:
    said = visit.request.query_params.getlist("versions")
    names, days, ids = (
        _split(visit.request.query_params.getlist(n)) for n in ("versions", "eval_dates", "evaluations")
    )
    if len(days) > len(names) or len(ids) > len(days):
        raise UsageError(
            "there are more dates than model versions, or more ids than dates; each is that of the one in its place"
        )
    latest = _latest(visit.look, visit.suite)
    in_order = days or (len(said) == 1 and len(names) > 1)
    ordered = names if in_order else _older_first(names or _newest(visit.look, visit.suite, latest), latest)
    places = zip_longest(ordered, days, ids, fillvalue="")
    return [_place(visit.look, visit.suite, place, known, latest) for place in places]


def _of_choice(look: StoreView, suite: str, one: str, known: Dates) -> Partition:
    """Returns the evaluation of `<model version>,<date>,<id>`; the id is empty for the newest of the date."""
    name, day, evaluation = one.rsplit(",", 2) if one.count(",") > 1 else (*one.rsplit(",", 1), "", "")[:3]
    return _place(look, suite, (name, day, evaluation), known, _latest(look, suite))


def _place(
    look: StoreView, suite: str, named: tuple[str, str, str], known: Dates, latest: Mapping[str, date]
) -> Partition:
    name, day, evaluation = named
    place = Partition(suite, name, _day(name, day, known, latest), "" if evaluation == NEWEST else evaluation)
    return known_place(look, place)


def _referenced(look: StoreView, suite: str, text: str, known: Dates) -> Partition:
    """Returns the evaluation that a reference names."""
    reference = parse_reference(text, known)
    if reference.file is not None:
        raise UsageError(f"'{text}' is a baseline file, which `eval-pipeline compare --baseline {text}` compares")
    rows = [row for row in listed(look, suite) if row["model_version"] in known]
    candidates = [known_of(row) for row in rows]
    found = chosen(reference, candidates)
    if found is None:
        raise NotFoundError(f"the store has no evaluation '{text}' of {suite}")
    return Partition(suite, found.model_version, found.eval_date, "" if found.is_newest else found.id)


def known_of(row: Row) -> KnownEvaluation:
    """Returns what a row of `evaluation.listed` tells of an evaluation."""
    begun_at = row["begun_at"] and row["begun_at"].replace(tzinfo=UTC)
    is_full = row["scope"] == FULL
    return KnownEvaluation(row["model_version"], row["eval_date"], is_full, row["id"] or "", begun_at, row["newest"])


def names_of_sides(look: StoreView, sides: Sequence[StoredEvaluation]) -> list[str]:
    """Returns names that tell the evaluations apart."""
    known = {
        (found.model_version, found.eval_date, "" if found.is_newest else found.id): found
        for found in map(known_of, listed(look, sides[0].partition.suite))
    }
    places = [(one.partition.model_version, one.partition.eval_date, one.partition.evaluation) for one in sides]
    return names_of([known.get(place) or KnownEvaluation(place[0], place[1], id=place[2]) for place in places])


def other_parts(look: StoreView, sides: Sequence[StoredEvaluation]) -> list[str]:
    """Returns the letters of the evaluations that were asked another part of the suite than the first one."""
    first, *others = (scope_of(look, one.partition) for one in sides)
    return [letter for letter, scope in zip(LETTERS[1:], others, strict=False) if scope != first]


def sides_address(sides: Sequence[StoredEvaluation], arguments: Mapping[str, object] | None = None) -> str:
    """Returns the address of evaluations side by side, with dates, so that it shows the same tomorrow."""
    return compare_path([side.partition for side in sides], arguments)


def address_arguments(sides: Sequence[StoredEvaluation]) -> dict[str, str]:
    """Returns the arguments of an address that name evaluations side by side, with their dates."""
    return compare_arguments([side.partition for side in sides])


def choices(look: StoreView, of: StoredEvaluation) -> list[tuple[Partition, str]]:
    """Returns the evaluations of the suite to choose from, each with its name, newest first by model version."""
    suite = of.partition.suite
    return [
        (place, f"{name}, {words}")
        for name in of.model_versions
        for place, words in places_of(look, suite, name, _MOST_DAYS)
    ]


def _split(said: Sequence[str]) -> list[str]:
    return [part.strip() for one in said for part in one.split(",") if part.strip()]


def _latest(look: StoreView, suite: str) -> Mapping[str, date]:
    """Returns each model version's evaluation that comparisons use: newest first, and most accurate first on a date."""

    def read() -> dict[str, date]:
        sql = f"SELECT model_version, eval_date FROM leaderboard({text(suite)}, with_retired := true)"
        rows = look.rows(sql)
        rows.sort(key=lambda row: row["eval_date"], reverse=True)
        return {row["model_version"]: row["eval_date"] for row in rows}

    return look.remembered(("latest", suite), read)


def _newest(look: StoreView, suite: str, latest: Mapping[str, date]) -> list[str]:
    """Returns the newest two model versions that were asked the same; the newest two where no two were."""
    scopes = {name: scope_of(look, Partition(suite, name, day)) for name, day in latest.items()}
    alike = ([name for name in latest if scopes[name] == scope][:LEAST] for scope in dict.fromkeys(scopes.values()))
    return next((names for names in alike if len(names) == LEAST), list(latest)[:LEAST])


def _older_first(names: Sequence[str], latest: Mapping[str, date]) -> list[str]:
    """Orders model versions by date; for equal dates, the order of the form is kept (most accurate first)."""
    return sorted(dict.fromkeys(names), key=lambda name: latest.get(name, date.max))


def _day(name: str, said: str, known: Dates, latest: Mapping[str, date]) -> date:
    if name not in known:
        raise NotFoundError(f"the store has no evaluation of '{name}' on this suite; of: {', '.join(known)}")
    if not said:
        return latest.get(name, known[name][0])
    try:
        day = date.fromisoformat(said)
    except ValueError as error:
        raise UsageError(f"'{said}' is not a date; expected YYYY-MM-DD") from error
    if day not in known[name]:
        listed = ", ".join(map(str, known[name]))
        raise NotFoundError(f"the store has no evaluation of '{name}' on this suite of {day}; of: {listed}")
    return day
