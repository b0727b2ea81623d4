"""Which evaluations are side by side: how an address names them, and how such an address is written."""

from collections.abc import Mapping, Sequence
from datetime import date

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.places.links import compare_arguments, compare_path
from eval_pipeline.store.ddl import text
from eval_pipeline.view.evaluation import Evaluation, evaluation_at, model_versions_of
from eval_pipeline.view.page import NotFoundError, Visit
from eval_pipeline.view.published import Look

LEAST, MOST = 2, 6
LETTERS = "ABCDEF"

Dates = Mapping[str, Sequence[date]]


def sides_of(visit: Visit) -> list[Evaluation]:
    """Returns the evaluations that the address names; the first one is the baseline.

    `versions` lists model versions separated by commas. If it is given several times, as a form does, the older
    evaluation comes first. For a model version without a date in `eval_dates`, the evaluation used by comparisons is
    chosen.

    Raises:
        NotFoundError: the store does not have one of them.
        UsageError: they are not two to six different evaluations.
    """
    known = model_versions_of(visit.look, visit.suite)
    if not known:
        raise NotFoundError(f"the store has no evaluation of a suite '{visit.suite}'")
    said = visit.request.query_params.getlist("versions")
    names, days = _split(said), _split(visit.request.query_params.getlist("eval_dates"))
    chosen = [one.rpartition(",") for one in visit.request.query_params.getlist("side") if one]
    if chosen:  # from the page's own form, in which each choice names an evaluation
        names, days = [name for name, _, _ in chosen], [day for _, _, day in chosen]
    if len(days) > len(names):
        raise UsageError(
            "there are more dates than model versions; each date is that of the model version in its place"
        )
    latest = _latest(visit.look, visit.suite)
    in_order = days or (len(said) == 1 and len(names) > 1)
    ordered = names if in_order else _older_first(names or _newest(latest), latest)
    partitions = [
        Partition(visit.suite, name, _day(name, days[place] if place < len(days) else "", known, latest))
        for place, name in enumerate(ordered)
    ]
    if len(set(partitions)) != len(partitions) or not LEAST <= len(partitions) <= MOST:
        raise UsageError(
            f"{LEAST} to {MOST} different evaluations can be shown side by side; choose them on the first page"
        )
    return [evaluation_at(visit.look, partition) for partition in partitions]


def sides_address(sides: Sequence[Evaluation], arguments: Mapping[str, object] | None = None) -> str:
    """Returns the address of evaluations side by side, with dates, so that it shows the same tomorrow."""
    return compare_path([side.partition for side in sides], arguments)


def address_arguments(sides: Sequence[Evaluation]) -> dict[str, str]:
    """Returns the arguments of an address that name evaluations side by side, with their dates."""
    return compare_arguments([side.partition for side in sides])


def _split(said: Sequence[str]) -> list[str]:
    return [part.strip() for one in said for part in one.split(",") if part.strip()]


def _latest(look: Look, suite: str) -> Mapping[str, date]:
    """Returns each model version's evaluation that comparisons use: newest first, and most accurate first on a date."""

    def read() -> dict[str, date]:
        sql = f"SELECT model_version, eval_date FROM leaderboard({text(suite)}, with_retired := true)"
        rows = look.rows(sql)
        rows.sort(key=lambda row: row["eval_date"], reverse=True)
        return {row["model_version"]: row["eval_date"] for row in rows}

    return look.remembered(("latest", suite), read)


def _newest(latest: Mapping[str, date]) -> list[str]:
    return list(latest)[:LEAST]


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
