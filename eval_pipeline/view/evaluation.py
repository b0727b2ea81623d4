"""Determines which evaluation a page is about, and which columns its turns have."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date

from eval_pipeline.analysis.comparisons.chosen.references import time_of_day
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.contents.draws import drawn_text
from eval_pipeline.store.published.ddl import quoted, text
from eval_pipeline.store.tables import SAMPLED_ESTIMATES
from eval_pipeline.view.filtering.filter import UNREVIEWED
from eval_pipeline.view.page import NotFoundError, Visit
from eval_pipeline.view.published import Row, StoreView
from eval_pipeline.view.reviewing import reviewed_since
from eval_pipeline.workspace.asked.scope import FULL

KEY = ("suite", "model_version", "eval_date")
_OF_ALL, _OF_TRACK = "r", "t"
LEADERBOARD = """SELECT d.*, d.usd / nullif(d.turns, 0) AS usd_per_turn,
    d.tokens / nullif(d.turns, 0) AS tokens_per_turn, c.usd_per_correct_turn, c.usd_per_correct_turn_low,
    c.usd_per_correct_turn_high, c.tokens_per_correct_turn
FROM leaderboard_details AS d LEFT JOIN cost_per_correct_answer AS c USING (suite, model_version, eval_date)
ORDER BY d.suite, d.accuracy DESC NULLS LAST, d.tokens_per_success NULLS LAST, d.model_version"""
"""The newest evaluation of each model version, the most accurate first, with what a turn and a right turn cost."""


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
class StoredEvaluation:
    """An evaluation in the store.

    Attributes:
        track: the kind of task of its suite.
        columns: columns of its turns by name: first those that all tracks share, then the track's own.
        model_versions: model versions of the suite, each with its dates, newest first.
        reviewed_since: turn id and hash of the response of answers reviewed since the store was published; only there
            where the address asks for what nobody has reviewed.
    """

    partition: Partition
    track: str
    columns: Mapping[str, TurnColumn]
    model_versions: Mapping[str, tuple[date, ...]]
    reviewed_since: tuple[tuple[str, str], ...] = ()

    @property
    def track_table(self) -> str:
        """The table with the track's own columns."""
        return f"{self.track}_turns"

    def table(self, name: str) -> str:
        """Returns the table of that name that has this evaluation's rows, as SQL."""
        return table_of(self.partition, name)


def table_of(partition: Partition, name: str) -> str:
    """Returns the table of that name that has an evaluation's rows, as SQL; earlier ones have a schema of their own."""
    return f"earlier.{quoted(name)}" if partition.evaluation else quoted(name)


def of_earlier(partition: Partition, alias: str = "") -> str:
    """Returns what a condition on model version and date needs beside them: the id of an earlier evaluation."""
    return f" AND {alias}evaluation_id = {text(partition.evaluation)}" if partition.evaluation else ""


def evaluation_of(visit: Visit) -> StoredEvaluation:
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
    place = Partition(visit.suite, version, day, visit.argument("evaluation"))
    found = evaluation_at(visit.look, known_place(visit.look, place))
    if UNREVIEWED in visit.request.query_params.getlist("only"):
        found = replace(found, reviewed_since=reviewed_since(visit, version))
    return found


def chosen_in_form(visit: Visit, chosen: str) -> Partition:
    """Returns the evaluation that the form of a page names: `<date>,<id>`, the id empty for the newest of the date.

    Where the form has chosen another model version as well, which need not have that date, it is the newest of that.
    """
    versions, version = model_versions_of(visit.look, visit.suite), visit.argument("model_version")
    if version not in versions:
        raise NotFoundError(f"the store has no evaluation of '{version}' on {visit.suite}; of: {', '.join(versions)}")
    places = [place for place, _ in places_of(visit.look, visit.suite, version)]
    there = (place for place in places if f"{place.eval_date},{place.evaluation}" == chosen)
    same_day = (place for place in places if str(place.eval_date) == chosen.partition(",")[0])
    return next(there, None) or next(same_day, None) or places[0]


def places_of(look: StoreView, suite: str, version: str, most: int | None = None) -> list[tuple[Partition, str]]:
    """Returns the evaluations of a model version, newest first, each with its date, and its time if it is earlier.

    Args:
        look: the store.
        suite: the suite.
        version: the model version.
        most: how many dates to return at most; all by default.
    """
    earlier = [row for row in listed(look, suite) if row["model_version"] == version and not row["newest"]]
    found = []
    for day in model_versions_of(look, suite).get(version, ())[:most]:
        found.append((Partition(suite, version, day), str(day)))
        for row in earlier:
            if row["eval_date"] == day:
                began = row["begun_at"] and row["begun_at"].replace(tzinfo=UTC)
                words = f"{day} {time_of_day(began)} {row['id']}".replace("  ", " ")
                found.append((Partition(suite, version, day, row["id"]), words))
    return found


def known_place(look: StoreView, named: Partition) -> Partition:
    """Returns the place of an evaluation that an address names by its id, too; the newest of the date has none there.

    Raises:
        NotFoundError: the store has no evaluation with this id of that model version and date.
    """
    if not named.evaluation:
        return named
    for row in listed(look, named.suite):
        own = (row["id"], row["model_version"], row["eval_date"])
        if own == (named.evaluation, named.model_version, named.eval_date):
            return replace(named, evaluation="") if row["newest"] else named
    raise NotFoundError(
        f"the store has no evaluation '{named.evaluation}' of '{named.model_version}' on {named.eval_date}"
    )


def listed(look: StoreView, suite: str) -> Sequence[Row]:
    """Returns rows of `evaluations` of a suite, each with its scope and hashes of its prompt and other settings."""
    return _all_listed(look).get(suite, ())


def is_row(place: Partition, row: Row) -> bool:
    """Whether a row of `listed` is about an evaluation."""
    named = place.evaluation == row["id"] if place.evaluation else row["newest"]
    return named and (row["model_version"], row["eval_date"]) == (place.model_version, place.eval_date)


def scope_of(look: StoreView, place: Partition) -> str:
    """Returns which part of its suite an evaluation was asked: only evaluations of one scope may be paired."""
    return next((row["scope"] for row in listed(look, place.suite) if is_row(place, row)), FULL)


def earlier_days(look: StoreView, now: Partition) -> list[date]:
    """Returns the earlier dates on which its model version was asked the same part of the suite, newest first."""
    scope, rows = scope_of(look, now), listed(look, now.suite)
    mine = [row for row in rows if row["model_version"] == now.model_version and row["newest"]]
    other = {row["eval_date"] for row in mine if row["scope"] != scope}
    days = model_versions_of(look, now.suite).get(now.model_version, ())
    return [day for day in days if day < now.eval_date and day not in other]


def _all_listed(look: StoreView) -> Mapping[str, Sequence[Row]]:
    sql = """SELECT e.suite, e.id, e.model_version, e.eval_date, e.newest, e.begun_at,
            coalesce(s.scope, 'full') AS scope,
            md5(e.prompt || ' ' || coalesce(CAST(e.prompt_text AS VARCHAR), '')) AS prompt_hash,
            CASE WHEN e.settings ->> '$.provider' IS NULL THEN e.model_version
            ELSE md5(json_merge_patch(e.settings, '{"prompt": null, "suite_prompt": null}')) END AS settings_hash
            FROM evaluations AS e LEFT JOIN (
            SELECT suite, model_version, eval_date, evaluation_id, arg_max(scope, started_at) AS scope
            FROM runs GROUP BY ALL
        ) AS s ON s.suite = e.suite AND s.model_version = e.model_version AND s.eval_date = e.eval_date
            AND s.evaluation_id IS NOT DISTINCT FROM e.id
        ORDER BY e.suite, e.model_version, e.eval_date DESC, e.newest DESC, e.begun_at DESC"""
    # An older version may have made the store.
    return look.remembered("listed", lambda: by_suite(look.rows(sql)) if look.has("evaluations") else {})


def evaluation_at(look: StoreView, partition: Partition) -> StoredEvaluation:
    """Returns the evaluation of a partition that is in the store."""

    def read() -> str:
        row = look.row("SELECT any_value(track) AS track FROM turn_results WHERE suite = ?", [partition.suite])
        return str(row["track"]) if row else ""

    track = look.remembered(("track", partition.suite), read)
    versions = model_versions_of(look, partition.suite)
    return StoredEvaluation(partition, track, turn_columns(look, track), versions)


def model_versions_of(look: StoreView, suite: str) -> Mapping[str, tuple[date, ...]]:
    """Returns the model versions that were evaluated on a suite, each with its dates, newest first."""
    return _all_evaluations(look).get(suite, {})


def model_version_of(look: StoreView, name: str) -> Row:
    """Returns the row of `model_versions`; empty if there is none."""
    sql = "SELECT * FROM model_versions WHERE model_version = ?"
    return look.remembered(("model version", name), lambda: look.row(sql, [name]) or {})


def leaderboard(look: StoreView) -> Mapping[str, Sequence[Row]]:
    """Returns the rows of `LEADERBOARD` by suite, retired model versions too."""
    return look.remembered("leaderboard", lambda: by_suite(look.rows(LEADERBOARD)))


def by_suite(rows: Iterable[Row]) -> Mapping[str, Sequence[Row]]:
    """Returns rows by their suite, each in the order in which they came."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["suite"], []).append(row)
    return found


def _all_evaluations(look: StoreView) -> Mapping[str, Mapping[str, tuple[date, ...]]]:
    def read() -> dict[str, dict[str, tuple[date, ...]]]:
        sql = "SELECT DISTINCT suite, model_version, eval_date FROM turn_results ORDER BY ALL DESC"
        rows = [row for suite in _all_listed(look).values() for row in suite if row["newest"]]
        found: dict[str, dict[str, tuple[date, ...]]] = {}
        for row in rows or sorted(look.rows(sql), key=lambda row: (row["suite"], row["model_version"])):
            of = found.setdefault(row["suite"], {})
            of[row["model_version"]] = (*of.get(row["model_version"], ()), row["eval_date"])
        return found

    return look.remembered("evaluations", read)


def turn_columns(look: StoreView, track: str) -> Mapping[str, TurnColumn]:
    """Returns the columns of turns for a track: first those that all tracks share, then the track's own."""
    found = {}
    for table, alias in (("turn_results", _OF_ALL), (f"{track}_turns", _OF_TRACK)):
        for name, (kind, comment) in look.columns(table).items():
            if name not in found and name not in {*KEY, "track", "simulated"}:
                sql = f"{alias}.{quoted(name)}"
                found[name] = TurnColumn(name, sql, kind, comment, alias == _OF_TRACK)
    return found


def _day(said: str) -> date | None:
    try:
        return date.fromisoformat(said) if said else None
    except ValueError as error:
        raise UsageError(f"'{said}' is not a date; expected YYYY-MM-DD") from error


def implausible(look: StoreView, suite: str) -> Mapping[Partition, Sequence[str]]:
    """Returns signs of a wrong configuration, as opposed to a bad model, of those evaluations that have any."""

    def read() -> dict[Partition, Sequence[str]]:
        if not look.has("coverage", "implausible"):  # the store was made by an older version
            return {}
        rows = look.rows(
            "SELECT model_version, eval_date, implausible FROM coverage WHERE suite = ? AND implausible IS NOT NULL",
            [suite],
        )
        return {
            Partition(suite, row["model_version"], row["eval_date"]): parse_json(row["implausible"]) for row in rows
        }

    return look.remembered(("implausible", suite), read)


def drawn(look: StoreView, partition: Partition) -> str:
    """Returns what an evaluation of drawn cases says about the whole suite, in words; empty for others."""
    if not look.has(SAMPLED_ESTIMATES.name):  # the store was made by an older version
        return ""
    key = [partition.suite, partition.model_version, partition.eval_date]
    source, earlier = table_of(partition, SAMPLED_ESTIMATES.name), of_earlier(partition)
    sql = f"SELECT * FROM {source} WHERE suite = ? AND model_version = ? AND eval_date = ?{earlier}"
    rows = look.rows(sql, key)
    return drawn_text(rows)
