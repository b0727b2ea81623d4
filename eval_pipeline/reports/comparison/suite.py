"""Everything that the record has to compare a suite's model versions, as the reports' own queries return it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.core.covering.left_out import CaseCounts
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.charts.trend import of_one_scope
from eval_pipeline.reports.comparison.contracts import contracts_query
from eval_pipeline.reports.comparison.conversation import figures_query
from eval_pipeline.reports.comparison.differing import changed_turns, differing_query, sides_of_pair, turn_ids
from eval_pipeline.reports.contents.gold import suspects_query
from eval_pipeline.reports.queries import KINDS, RecordQueries, in_parts, literal, newest_of, recorded_rows
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import (
    ACCURACY_BY_CONTRACT,
    COVERAGE,
    GOLD_SUSPECTS,
    MODEL_COMPARISONS,
    STATISTICS,
    TRENDS,
    TURN_ERRORS,
    TURN_RESULTS,
    arrow_schema,
)

Row = dict[str, Any]
SIDES = ("a", "b")
NOT_SIGNIFICANT = "not_significant"
_MOST_PAIRS = 30
_OF_SUITE = (MODEL_COMPARISONS, TRENDS, GOLD_SUSPECTS)
_OF_TURNS: Mapping[Table, tuple[str, ...]] = {
    TURN_RESULTS: ("question", "expected", "answer"),
    TURN_ERRORS: KINDS,
}
"""Tables of turns, which are large, with the columns that are read of them beside those that name a turn."""
_OF_EVALUATIONS = (COVERAGE, STATISTICS, ACCURACY_BY_CONTRACT, *_OF_TURNS)
POINTS = (
    "difference", "low_corrected", "high_corrected", "conservative_difference", "conservative_low", "conservative_high",
    "minimum_detectable_difference",
)  # fmt: skip
"""Columns of `model_comparisons` that the workbook shows in percentage points."""
DAY_0 = date(1899, 12, 30)
"""Day 0 of Excel's dates, in the form that is right from March 1900 on."""


def pairs_query(suite: str, condition: str = "") -> str:
    """Returns the query for rows of `model_comparisons`, also in points, with the lengths of whiskers."""
    also = f" AND {condition}" if condition else ""
    in_points = ", ".join(f"100 * {name} AS {name}_points" for name in POINTS)
    return (
        f"SELECT *, {in_points}, {_whiskers('difference', 'low_corrected', 'high_corrected', '100 * ')} "
        f"FROM model_comparisons WHERE suite = {literal(suite)}{also} ORDER BY model_a, model_b"
    )


def pairs_of_query(partition: Partition) -> str:
    """Returns the query for the pairs that an evaluation is one of."""
    name, day = literal(partition.model_version), f"DATE '{partition.eval_date.isoformat()}'"
    either = " OR ".join(f"(model_{side} = {name} AND eval_date_{side} = {day})" for side in SIDES)
    return pairs_query(partition.suite, f"({either})")


def trends_query(suite: str) -> str:
    """Returns the query for rows of `trends`, also in points, with costs per turn, the day and lengths of whiskers."""
    return (
        "SELECT *, 100 * previous_difference AS previous_points, 100 * first_difference AS first_points, "
        "tokens_total / nullif(n, 0) AS tokens_a_turn, usd_total / nullif(n, 0) AS usd_a_turn, "
        f"date_diff('day', DATE '{DAY_0.isoformat()}', eval_date) AS day, {_whiskers('accuracy', 'low', 'high')} "
        f"FROM trends WHERE suite = {literal(suite)} AND NOT coalesce(retired, false) "
        "ORDER BY model_version, eval_date"
    )


def cases_query(suite: str) -> str:
    """Returns the query for how many cases each newest evaluation covers."""
    return (
        f"SELECT * FROM coverage JOIN {newest_of(suite)} USING (suite, model_version, eval_date) ORDER BY model_version"
    )


def _whiskers(value: str, low: str, high: str, lead: str = "") -> str:
    ends = {"up": f"{high} - {value}", "down": f"{value} - {low}"}
    return ", ".join(f"if({high} - {low} IS NULL, NULL, {lead}greatest({end}, 0)) AS {n}" for n, end in ends.items())


@dataclass(frozen=True, slots=True)
class Standing:
    """A model version's newest evaluation, compared with the others.

    Attributes:
        row: its row of `trends_query`.
        unit: `usd` or `tokens`, the unit of cost for the Pareto front; None if no cost is known.
        cost: cost per turn in that unit.
        on_front: whether no other of its kind (real or simulated) is at least as cheap and as accurate; None if
            unknown.
        equals: model versions from which it does not differ significantly.
        untested: model versions against which it was not tested, as those that were asked another part of the suite.
    """

    row: Row
    unit: str | None
    cost: float | None
    on_front: bool | None
    equals: tuple[str, ...]
    untested: tuple[str, ...]

    @property
    def model_version(self) -> str:
        """Name of the model version."""
        return str(self.row["model_version"])


class SuiteRows(Protocol):
    """Reads a suite's rows of published tables."""

    def __call__(
        self, table: Table, sides: Collection[Partition] = (), turns: Collection[str] | None = None
    ) -> pa.Table:
        """Returns the rows of a table; of turns perhaps only those of some evaluations, and with some ids."""


class SuiteComparison:
    """The comparisons and trends of a suite, each read when it is first used.

    Attributes:
        suite: its name.
        read: returns the rows of a published table that queries read: of the suite, or of the newest evaluations.
    """

    def __init__(self, suite: str, read: SuiteRows) -> None:
        self.suite, self.read = suite, read
        self._queries = RecordQueries((*_OF_SUITE, *_OF_EVALUATIONS), read)

    def query(self, sql: str) -> list[Row]:
        """Returns the rows of a query that reports print: what is shown is what it returns."""
        return self._queries.rows(sql)

    def flat(self, table: Table) -> pa.Table:
        """Returns the rows of one of the suite's tables, without retired model versions."""
        rows = self.read(table)
        return rows.filter(pc.invert(pc.fill_null(rows["retired"], False))) if table == TRENDS else rows

    def differing(self, pair: Row, most: int | None = None) -> Iterator[Row]:
        """Yields the rows that `differing_query` returns of one of the pairs, in its order.

        Only what the two say of these turns is read: the answers of all model versions are too much to hold.
        """
        sides, changed = sides_of_pair(self.suite, pair), changed_turns(pair, most)
        if ids := turn_ids(changed):
            alone = pa.Table.from_pylist([pair], arrow_schema(MODEL_COMPARISONS))
            tables = (MODEL_COMPARISONS, *_OF_TURNS)
            queries = RecordQueries(tables, lambda one: alone if one == tables[0] else self.read(one, sides, ids))
            yield from in_parts(queries.table(differing_query(self.suite, most)))

    @cached_property
    def pairs(self) -> list[Row]:
        """Rows of `pairs_query`."""
        return self.query(pairs_query(self.suite))

    @cached_property
    def nights(self) -> list[Row]:
        """Rows of `trends_query`, by model version and date."""
        return self.query(trends_query(self.suite))

    @cached_property
    def suspects(self) -> list[Row]:
        """Rows of `suspects_query`."""
        return self.query(suspects_query(self.suite))

    @cached_property
    def conversations(self) -> list[Row]:
        """Rows of `figures_query`; empty for most tracks."""
        return self.query(figures_query(self.suite))

    @cached_property
    def contracts(self) -> list[Row]:
        """Rows of `contracts_query`; empty for most tracks."""
        return self.query(contracts_query(self.suite))

    @cached_property
    def case_counts(self) -> Mapping[str, CaseCounts]:
        """How many cases the newest evaluation of each model version covers; older ones have none."""
        return {row["model_version"]: CaseCounts.from_row(row) for row in self.query(cases_query(self.suite))}

    def cases_of(self, standing: Standing) -> CaseCounts:
        """Returns how many cases an evaluation covers; unknown for older evaluations."""
        return self.case_counts.get(standing.model_version, CaseCounts())

    @property
    def eval_date(self) -> date:
        """Date of the newest evaluation."""
        newest: date = max(row["eval_date"] for row in self.nights)
        return newest

    @cached_property
    def standings(self) -> list[Standing]:
        """The newest evaluation of each model version, the most accurate first."""
        newest = {row["model_version"]: row for row in self.nights}
        found = [
            _standing(row, self.pairs, [name for name in newest if name != row["model_version"]])
            for row in newest.values()
        ]
        return sorted(found, key=lambda standing: (-(standing.row["accuracy"] or 0), standing.model_version))

    @property
    def charted(self) -> list[Standing]:
        """Those that were asked the same: the whole suite, if any was, else what the most accurate one was."""
        return of_one_scope(self.standings, lambda found: found.row["scope"])

    def priced(self) -> Iterator[tuple[str, list[Standing]]]:
        """Yields those of models and of stand-ins whose cost and accuracy are known, if they are several."""
        known = [found for found in self.charted if found.cost is not None and found.row["accuracy"] is not None]
        for simulated, kind in ((False, "models"), (True, "simulated stand-ins")):
            group = [found for found in known if found.row["simulated"] is simulated]
            if len(group) > 1:
                yield kind, group

    @property
    def tested(self) -> list[Row]:
        """The pairs with a test that are drawn, the most different first."""
        tested = [row for row in self.pairs if row["verdict"] is not None]
        return sorted(tested, key=lambda row: -abs(row["difference"]))[:_MOST_PAIRS]


def read_comparison(record: Record, suite: str) -> SuiteComparison | None:
    """Returns a suite's comparisons, without retired model versions; None if there are none."""
    if record.header(MODEL_COMPARISONS, RecordKey.of_suite(suite)) is None or not (places := newest(record, suite)):
        return None

    def read(table: Table, sides: Collection[Partition] = (), turns: Collection[str] | None = None) -> pa.Table:
        wanted = [RecordKey.of(place) for place in places if not sides or place in sides]
        keys = [RecordKey.of_suite(suite)] if table.key == "suite" else wanted
        columns = ["suite", "model_version", "eval_date", "turn_id", "sample", *_OF_TURNS.get(table, ())]
        return recorded_rows(record, table, keys, columns if table in _OF_TURNS else None, turns)

    return SuiteComparison(suite, read)


def newest(record: Record, suite: str) -> list[Partition]:
    """Returns the newest evaluation of each model version in use, as in `trends`."""
    columns = ["model_version", "eval_date", "retired"]
    rows = recorded_rows(record, TRENDS, [RecordKey.of_suite(suite)], columns).to_pylist()
    found = dict(sorted((row["model_version"], row["eval_date"]) for row in rows if not row["retired"]))
    return [Partition(suite, name, day) for name, day in found.items()]


def comparison_hashes(record: Record, suite: str) -> Mapping[str, str]:
    """Returns content hashes of all tables that a suite's comparison report shows; empty if there is nothing to show.

    The arguments are those of `read_comparison`.
    """
    found = {table.name: record.header(table, RecordKey.of_suite(suite)) for table in _OF_SUITE}
    of_suite = {name: header.content_hash for name, header in found.items() if header is not None}
    places = newest(record, suite)
    return of_suite | {
        f"{table.name} of {place.model_version}, {place.eval_date}": header.content_hash
        for table in _OF_EVALUATIONS
        for one in table.record_tables()
        for place in places
        if (header := record.header(one, RecordKey.of(place))) is not None
    }


def _standing(row: Row, pairs: list[Row], others: Sequence[str]) -> Standing:
    name = row["model_version"]
    mine = [(pair, side) for pair in pairs for side in SIDES if pair[f"model_{side}"] == name]
    verdicts = {pair["model_b" if side == "a" else "model_a"]: pair["verdict"] for pair, side in mine}
    equals, untested = (
        tuple(other for other in others if verdicts.get(other) == verdict) for verdict in (NOT_SIGNIFICANT, None)
    )
    if mine:
        unit, on_front = mine[0][0][f"pareto_cost_{mine[0][1]}"], mine[0][0][f"on_front_{mine[0][1]}"]
    else:
        unit, on_front = ("usd" if row["usd_total"] is not None else "tokens"), None
    return Standing(row, unit, row[f"{unit}_a_turn"] if unit else None, on_front, equals, untested)


def differs(pair: Row) -> bool:
    """Returns whether the two model versions of a pair differ significantly."""
    return pair["verdict"] not in (None, NOT_SIGNIFICANT)
