"""Determines which evaluation a page is about, and which columns its turns have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.contents.draws import drawn_text
from eval_pipeline.store.ddl import quoted
from eval_pipeline.store.tables import SAMPLED_ESTIMATES
from eval_pipeline.view.page import NotFoundError, Visit
from eval_pipeline.view.published import Look

KEY = ("suite", "model_version", "eval_date")
_OF_ALL, _OF_TRACK = "r", "t"


@dataclass(frozen=True, slots=True)
class TurnColumn:
    """A column of an evaluation's turns.

    Attributes:
        sql: how a query on `Evaluation.source` refers to it.
        type: its DuckDB type.
        of_track: whether it is in the track's own table.
    """

    name: str
    sql: str
    type: str
    comment: str
    of_track: bool

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers."""
        return self.type in {"BIGINT", "DOUBLE"}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An evaluation in the store.

    Attributes:
        track: the kind of task of its suite.
        columns: columns of its turns by name: first those that all tracks share, then the track's own.
        model_versions: model versions of the suite, each with its dates, newest first.
    """

    partition: Partition
    track: str
    columns: Mapping[str, TurnColumn]
    model_versions: Mapping[str, tuple[date, ...]]

    @property
    def track_table(self) -> str:
        """The table with the track's own columns."""
        return f"{self.track}_turns"


def evaluation_of(visit: Visit) -> Evaluation:
    """Returns the evaluation that the address names; the newest one for anything left open.

    Raises:
        NotFoundError: the store has no such evaluation.
        UsageError: the date is invalid.
    """
    versions = model_versions_of(visit.look, visit.suite)
    if not versions:
        raise NotFoundError(f"the store has no evaluation of a suite '{visit.suite}'")
    version = visit.argument("model_version") or max(versions, key=lambda name: versions[name][0])
    if version not in versions:
        raise NotFoundError(f"the store has no evaluation of '{version}' on {visit.suite}; of: {', '.join(versions)}")
    day = _day(visit.argument("eval_date")) or versions[version][0]
    if day not in versions[version]:
        known = ", ".join(map(str, versions[version]))
        raise NotFoundError(f"the store has no evaluation of '{version}' on {visit.suite} of {day}; of: {known}")
    return evaluation_at(visit.look, Partition(visit.suite, version, day))


def evaluation_at(look: Look, partition: Partition) -> Evaluation:
    """Returns the evaluation of a partition that is in the store."""
    track = _track_of(look, partition.suite)
    versions = model_versions_of(look, partition.suite)
    return Evaluation(partition, track, turn_columns(look, track), versions)


def model_versions_of(look: Look, suite: str) -> Mapping[str, tuple[date, ...]]:
    """Returns the model versions that were evaluated on a suite, each with its dates, newest first."""
    return _all_evaluations(look).get(suite, {})


def _all_evaluations(look: Look) -> Mapping[str, Mapping[str, tuple[date, ...]]]:
    def read() -> dict[str, dict[str, tuple[date, ...]]]:
        rows = look.rows(
            "SELECT suite, model_version, list(DISTINCT eval_date ORDER BY eval_date DESC) AS dates "
            "FROM turn_results GROUP BY ALL ORDER BY ALL"
        )
        found: dict[str, dict[str, tuple[date, ...]]] = {}
        for row in rows:
            found.setdefault(row["suite"], {})[row["model_version"]] = tuple(row["dates"])
        return found

    return look.remembered("evaluations", read)


def _track_of(look: Look, suite: str) -> str:
    def read() -> str:
        row = look.row("SELECT any_value(track) AS track FROM turn_results WHERE suite = ?", [suite])
        return str(row["track"]) if row else ""

    return look.remembered(("track", suite), read)


def turn_columns(look: Look, track: str) -> Mapping[str, TurnColumn]:
    """Returns the columns of turns for a track: first those that all tracks share, then the track's own."""
    found = {}
    for table, alias in (("turn_results", _OF_ALL), (f"{track}_turns", _OF_TRACK)):
        for name, (kind, comment) in look.columns(table).items():
            if name not in found and name not in {*KEY, "track", "simulated"}:
                sql = f"{alias}.{quoted(name)}"
                found[name] = TurnColumn(name, sql, kind, comment, alias == _OF_TRACK)
    return found


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise UsageError(f"'{text}' is not a date; expected YYYY-MM-DD") from error


def implausible(look: Look, suite: str) -> Mapping[Partition, Sequence[str]]:
    """Returns signs of a wrong configuration, as opposed to a bad model, of those evaluations that have any."""

    def read() -> dict[Partition, Sequence[str]]:
        if "implausible" not in look.columns("coverage"):  # the store was made by an older version
            return {}
        rows = look.rows(
            "SELECT model_version, eval_date, implausible FROM coverage WHERE suite = ? AND implausible IS NOT NULL",
            [suite],
        )
        return {
            Partition(suite, row["model_version"], row["eval_date"]): parse_json(row["implausible"]) for row in rows
        }

    return look.remembered(("implausible", suite), read)


def drawn(look: Look, partition: Partition) -> str:
    """Returns what an evaluation of drawn cases says about the whole suite, in words; empty for others."""
    if not look.columns(SAMPLED_ESTIMATES.name):  # the store was made by an older version
        return ""
    key = [partition.suite, partition.model_version, partition.eval_date]
    rows = look.rows("SELECT * FROM sampled_estimates WHERE suite = ? AND model_version = ? AND eval_date = ?", key)
    return drawn_text(rows)
