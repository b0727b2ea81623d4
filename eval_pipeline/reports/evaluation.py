"""Gives reports access to one evaluation in the record."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.core.covering.coverage import Coverage
from eval_pipeline.core.covering.left_out import CaseCounts
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import text_hash
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.comparison.contracts import contracts_query
from eval_pipeline.reports.comparison.differing import sides_of_pair
from eval_pipeline.reports.comparison.suite import pairs_of_query
from eval_pipeline.reports.contents.gold import suspects_query
from eval_pipeline.reports.places.paths import exported_state
from eval_pipeline.reports.profile import Profile
from eval_pipeline.reports.queries import RecordQueries, recorded_rows, statistics_query, table_query
from eval_pipeline.store import tables
from eval_pipeline.store.record import Header, Record, RecordKey
from eval_pipeline.store.schemas import Table

Row = dict[str, Any]

ALL = "all"
OVERALL = f"split = '{ALL}'"
"""The rows of `statistics` that cover all turns."""
_CONTRACTS = tables.ACCURACY_BY_CONTRACT
_LATER = (
    tables.COVERAGE,
    tables.GOLD_OVERRIDES,
    tables.LEFT_OUT_CASES,
    tables.SUITE_EDITIONS,
    tables.GOLD_EDITIONS,
    tables.SAMPLED_ESTIMATES,
    tables.MEASURED_EVIDENCE,
    _CONTRACTS,
)
_SERVED = ("served_model", "system_fingerprint")


@dataclass(frozen=True, slots=True)
class Planned:
    """What the run that asked the model was meant to cover.

    Attributes:
        scope: `full`, or as JSON which part of the suite was requested.
        turns, cases: how many are in that scope; None if no run is on record.
        software: version of each software package.
    """

    scope: str
    turns: int | None = None
    cases: int | None = None
    software: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Whether the whole suite was requested."""
        return self.scope == "full"


class Evaluation:
    """The data of one evaluation (a suite, a model version and a date), each part read once, when it is first used."""

    def __init__(self, record: Record, partition: Partition, profile: Profile, exported: Path | None = None) -> None:
        """Sets up access.

        `exported` is where the exported pages of this evaluation would be, so that reports can link to them.
        """
        self._record = record
        self.exported = exported
        self.partition = partition
        self.profile = profile
        self._kept: dict[str, pa.Table] = {}

    def made_from(self, tables: Sequence[Table]) -> dict[str, str]:
        """Returns hashes of everything that the reports show: tables, and some facts that are in no such table.

        Of the table `runs` only the facts that are shown are hashed, since every run adds a row there.

        Raises:
            UsageError: the record lacks one of the tables (tables that earlier versions did not make may be missing).
        """
        hashes = {table.name: self._header(table).content_hash for table in self.present(tables)}
        return hashes | {name: text_hash(repr(told)) for name, told in self.beside().items()}

    def beside(self) -> dict[str, Any]:
        """Returns what the reports show beside tables, as plain values and dates.

        It is what is recorded, as no query need run for a report that is copied.
        """
        planned, profile = self.planned, self.profile
        metrics = [[m.name, m.kind, m.description, m.mean_name] for m in profile.metrics]
        told = {
            "runs": [planned.scope, planned.turns, planned.cases, dict(planned.software)],
            "profile": [profile.track, profile.primary_metric, metrics],
            "suspects": self._values(tables.GOLD_SUSPECTS),
            "comparisons": [[*row.values()] for row in self._pairs],
            "contracts": self._values(_CONTRACTS) if self._pairs else [],
        }
        if self.exported is not None and (state := exported_state(self.exported)):
            told["exported"] = state
        return told

    def read(self, table: Table) -> pa.Table:
        """Returns the rows of a table that belong to this evaluation, or to its suite or its model version."""
        return self._record.read(table, self._key(table))

    def published(self, table: Table) -> pa.Table:
        """Returns the same rows of a table of the store, from all record tables that it is published from, if any.

        Accuracies by contract are also of the evaluations that this one is compared with. They are kept, as a report
        asks for them several times, except shared ones, which are large.
        """
        if table.name in self._kept:
            return self._kept[table.name]
        of_all = table == _CONTRACTS
        keys = map(RecordKey.of, self._compared) if of_all else [self._key(table.record_tables()[0])]
        rows = recorded_rows(self._record, table, keys)
        if table.key != "shared":
            self._kept[table.name] = rows
        return rows

    def query(self, sql: str) -> list[Row]:
        """Returns the rows of a query on the store, as the record has them: what is shown is what it returns."""
        return self._queries.rows(sql)

    @cached_property
    def _queries(self) -> RecordQueries:
        profile = self.profile
        of_track = [profile.turns_table, *profile.tables, *profile.aggregates, *profile.further]
        return RecordQueries([*tables.all_tables(of_track), tables.TRENDS], self.published)

    def figures(self, table: Table) -> list[Row]:
        """Returns its rows of a table of figures, as `table_query` returns them; none if it is older than the table."""
        return self.query(table_query(self.partition, table.name))

    def rows(self, table: Table) -> list[Row]:
        """Returns the same rows as `read`, as Python values; meant for tables of moderate size."""
        rows: list[Row] = self.read(table).to_pylist()
        return rows

    def optional(self, table: Table) -> list[Row]:
        """Returns the rows of a table of aggregates that only some tracks have.

        Empty if this track does not have it.
        """
        return self.figures(table) if table in self.profile.aggregates else []

    def further(self) -> list[tuple[Table, list[Row]]]:
        """Returns the further tables with their rows; those of labels only if the suite has labels."""
        found = [(table, self.figures(table)) for table in self.profile.further]
        return [
            (table, rows) for table, rows in found if rows or table not in (tables.LABEL_CONFUSION, tables.LABEL_SCORES)
        ]

    @cached_property
    def results(self) -> pa.Table:
        """The table `turn_results`."""
        return self.published(tables.TURN_RESULTS)

    @cached_property
    def order(self) -> dict[tuple[str, int], int]:
        """The place of each turn and sample in the suite's order, from 0."""
        ids = zip(self.results["turn_id"].to_pylist(), self.results["sample"].to_pylist(), strict=True)
        return {place: number for number, place in enumerate(ids)}

    def in_order(self, rows: Iterable[Row]) -> list[Row]:
        """Returns rows of turns in the suite's order."""
        return sorted(rows, key=lambda row: self.order[row["turn_id"], row["sample"]])

    def table_of_turns(self, sql: str) -> pa.Table:
        """Returns the rows of a query for turns as Arrow, in the suite's order."""
        rows = self._queries.table(sql)
        ids = zip(rows["turn_id"].to_pylist(), rows["sample"].to_pylist(), strict=True)
        places = [self.order[place] for place in ids]
        return rows if places == sorted(places) else rows.take(pc.sort_indices(pa.array(places)))

    @property
    def covered(self) -> Row:
        """The row of `coverage`; empty for evaluations older than this table."""
        return next(iter(self.figures(tables.COVERAGE)), {})

    @property
    def coverage(self) -> Coverage:
        """How far the turns got (asked, answered, scored); unknown for older evaluations."""
        return Coverage.from_row(self.covered)

    @cached_property
    def case_counts(self) -> CaseCounts:
        """How many cases of the suite are covered, and why others are not; unknown for older evaluations."""
        return CaseCounts.from_row(self.covered)

    @property
    def implausible(self) -> list[str]:
        """Signs that the answers belong to other questions; none for older evaluations."""
        signs: list[str] = json.loads(self.covered.get("implausible") or "[]")
        return signs

    @cached_property
    def suite(self) -> Row:
        """The row of `suites`."""
        return self.rows(tables.SUITES)[0]

    @cached_property
    def model(self) -> Row:
        """The row of `model_versions`."""
        return self.rows(tables.MODEL_VERSIONS)[0]

    @cached_property
    def served(self) -> list[str]:
        """The models that answered, as the provider named them, and its system fingerprints.

        Empty if it reported none.
        """
        attempts = self._record.read(tables.GENERATIONS, self._key(tables.GENERATIONS), _SERVED)
        columns = (attempts[name].unique().to_pylist() for name in _SERVED)
        models, fingerprints = (sorted(filter(None, found)) for found in columns)
        return [*models, *(f"fingerprint {found}" for found in fingerprints)]

    @property
    def statistics(self) -> list[Row]:
        """The rows of `statistics`."""
        return self.figures(tables.STATISTICS)

    @cached_property
    def overall(self) -> dict[str, Row]:
        """The rows of `statistics` that cover all turns, by metric."""
        return {row["metric"]: row for row in self.query(statistics_query(self.partition, OVERALL))}

    @property
    def cost(self) -> Row:
        """The row of `cost_per_correct_answer`."""
        return self.figures(tables.COST_PER_CORRECT_ANSWER)[0]

    @property
    def ceilings(self) -> list[Row]:
        """The rows of `complexity_ceiling`, the axis of the gold's complexity first."""
        return self.figures(tables.COMPLEXITY_CEILING)

    @property
    def levels(self) -> list[Row]:
        """The rows of `accuracy_by_complexity`."""
        return self.figures(tables.ACCURACY_BY_COMPLEXITY)

    @property
    def error_groups(self) -> list[Row]:
        """The rows of `error_analysis`."""
        return self.figures(tables.ERROR_ANALYSIS)

    @property
    def wrong_in_form(self) -> Mapping[str, int] | None:
        """How many turns of each failure mode are right but for their form; None if the track does not tell."""
        table = self.profile.turns_table
        if not {"failure_mode", "wrong_in"} <= {column.name for column in table.columns}:
            return None
        counts = "failure_mode, count(*) AS turns"
        sql = table_query(self.partition, table.name, counts, "AND wrong_in = 'form' GROUP BY failure_mode")
        return {row["failure_mode"]: row["turns"] for row in self.query(sql)}

    @property
    def comparisons(self) -> list[Row]:
        """The rows of `pairs_of_query`, which compare this evaluation with another model version.

        None of an earlier evaluation: the query tells it from the newest of its date as little as the store does.
        """
        return self.query(pairs_of_query(self.partition)) if self._pairs else []

    @property
    def contracts(self) -> list[Row]:
        """The rows of `contracts_query`, of this evaluation and those it is compared with; none without those."""
        return self.query(contracts_query(self.partition.suite)) if self.comparisons else []

    @property
    def own_contracts(self) -> list[Row]:
        """The rows of `accuracy_by_contract` of this evaluation."""
        return self.figures(_CONTRACTS)

    @property
    def editions(self) -> list[Row]:
        """The rows of `gold_editions`; empty for evaluations older than that table."""
        return self.figures(tables.GOLD_EDITIONS)

    @property
    def drawn(self) -> list[Row]:
        """The rows of `sampled_estimates`; empty unless the cases were drawn with unequal probabilities."""
        return self.figures(tables.SAMPLED_ESTIMATES)

    @property
    def suspects(self) -> list[Row]:
        """The rows of `suspects_query`: what speaks against the gold of the suite."""
        return self.query(suspects_query(self.partition.suite))

    @cached_property
    def planned(self) -> Planned:
        """What was planned, according to the last run with the same scope as the generated answers."""
        scope = self._header(tables.GENERATIONS).made_from.get("scope", "full")
        key = RecordKey.of(self.partition)
        if self._record.header(tables.RUNS, key) is None:
            return Planned(scope)
        rows = [row for row in self._record.read(tables.RUNS, key).to_pylist() if row["scope"] == scope]
        if not rows:
            return Planned(scope)
        last = max(rows, key=lambda row: row["started_at"])
        return Planned(scope, last["turns_planned"], last["cases_planned"], json.loads(last["software"] or "{}"))

    @property
    def simulated(self) -> bool:
        """Whether the responses come from a simulated model instead of a real one."""
        return bool(self.model["simulated"])

    @property
    def turns(self) -> int:
        """The number of evaluated turns, counting every sample."""
        return int(self.results.num_rows)

    @cached_property
    def several_samples(self) -> bool:
        """Whether turns were asked more than once."""
        return any(sample > 0 for sample in self.results["sample"].unique().to_pylist())

    @cached_property
    def _pairs(self) -> list[Row]:
        """The rows of `model_comparisons` that include this evaluation."""
        mine, rows = self.partition, self.published(tables.MODEL_COMPARISONS).to_pylist()
        return [row for row in rows if mine in sides_of_pair(mine.suite, row)]

    @property
    def _compared(self) -> list[Partition]:
        """This evaluation, and those it is compared with."""
        others = (side for pair in self._pairs for side in sides_of_pair(self.partition.suite, pair))
        return list(dict.fromkeys([self.partition, *others]))

    def _values(self, table: Table) -> list[list[Any]]:
        return [[*row.values()] for row in self.published(table).to_pylist()]

    def present(self, tables: Sequence[Table]) -> list[Table]:
        """Returns the tables without newer ones that an older evaluation lacks; reports work without these."""
        return [
            table for table in tables if table not in _LATER or self._record.header(table, self._key(table)) is not None
        ]

    def _header(self, table: Table) -> Header:
        header = self._record.header(table, self._key(table))
        if header is None:
            part = self.partition
            place = f"{part.suite}, {part.model_version}, {part.eval_date}"
            raise UsageError(f"the record has no {table.name} of {place} yet; materialise the earlier stages first")
        return header

    def _key(self, table: Table) -> RecordKey:
        if table.key == "suite":
            return RecordKey.of_suite(self.partition.suite)
        if table.key == "model_version":
            return RecordKey.of_model_version(self.partition.model_version)
        return RecordKey.of(self.partition)
