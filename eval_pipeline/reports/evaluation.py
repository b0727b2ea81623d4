"""One evaluation as the reports read it from the record."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from eval_pipeline.core.coverage import Coverage
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.comparison.suite import pairs_of
from eval_pipeline.reports.exported import exported_state
from eval_pipeline.reports.profile import Profile
from eval_pipeline.store import tables
from eval_pipeline.store.coverage import recorded_coverage
from eval_pipeline.store.record import Header, Record, RecordKey
from eval_pipeline.store.schemas import Table

Row = dict[str, Any]

ALL = "all"
_LATER = (tables.COVERAGE, tables.GOLD_OVERRIDES, tables.SUITE_EDITIONS, tables.GOLD_EDITIONS)
_SERVED = ("served_model", "system_fingerprint")


@dataclass(frozen=True, slots=True)
class Planned:
    """What the run that asked the model was to do.

    Attributes:
        scope: `full`, or which part of the suite was asked for, as JSON.
        turns, cases: in that scope; None where no run is on record.
        software: package name to version.
    """

    scope: str
    turns: int | None = None
    cases: int | None = None
    software: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """The whole suite was asked for."""
        return self.scope == "full"


class Evaluation:
    """What one model version did with one suite on one date; reads lazily and once."""

    def __init__(self, record: Record, partition: Partition, profile: Profile, exported: Path | None = None) -> None:
        """`exported` is where its pages would lie; reports link to those that are there."""
        self._record = record
        self.exported = exported
        self.partition = partition
        self.profile = profile

    def made_from(self, tables: Sequence[Table]) -> dict[str, str]:
        """Hashes of everything that the reports show, which are tables and more.

        Of `runs` only what they show of it, since every run adds a row there.

        Raises:
            UsageError: the record lacks one of the tables, but for those that earlier versions did not make.
        """
        hashes = {table.name: self._header(table).content_hash for table in tables if not self._came_later(table)}
        planned = self.planned
        hashes["runs"] = json_hash([planned.scope, planned.turns, planned.cases, dict(planned.software)])
        metrics = [[m.name, m.kind, m.description, m.mean_name] for m in self.profile.metrics]
        hashes["profile"] = json_hash([self.profile.track, self.profile.primary_metric, metrics])
        hashes["suspects"] = json_hash([[str(value) for value in row.values()] for row in self.suspects])
        hashes["comparisons"] = json_hash([[str(value) for value in row.values()] for row in self.comparisons])
        if self.exported is not None and (state := exported_state(self.exported)):
            hashes["exported"] = json_hash(state)
        return hashes

    def read(self, table: Table) -> pa.Table:
        """Rows of a table that belong to this evaluation, or to its suite or model version."""
        return self._record.read(table, self._key(table))

    def rows(self, table: Table) -> list[Row]:
        """As `read`, as Python values; for tables of moderate size."""
        rows: list[Row] = self.read(table).to_pylist()
        return rows

    def optional(self, table: Table) -> list[Row]:
        """Rows of an aggregate that not every track has; none where this one lacks it."""
        return self.rows(table) if table in self.profile.aggregates else []

    def further(self) -> list[tuple[Table, list[Row]]]:
        """The aggregates that packages add, with their rows."""
        return [(table, self.rows(table)) for table in self.profile.further]

    @cached_property
    def results(self) -> pa.Table:
        """`turn_results`."""
        return self.read(tables.TURN_RESULTS)

    @cached_property
    def coverage(self) -> Coverage:
        """How far the turns got; nothing is known of evaluations that were made before there was such a table."""
        return recorded_coverage(self._record, self.partition)

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
        """Models that answered, in the provider's own words, and fingerprints of what ran them; none if not told."""
        attempts = self._record.read(tables.GENERATIONS, self._key(tables.GENERATIONS), _SERVED)
        columns = (attempts[name].unique().to_pylist() for name in _SERVED)
        models, fingerprints = (sorted(filter(None, found)) for found in columns)
        return [*models, *(f"fingerprint {found}" for found in fingerprints)]

    @cached_property
    def statistics(self) -> list[Row]:
        """Rows of `statistics`."""
        return self.rows(tables.STATISTICS)

    @cached_property
    def overall(self) -> dict[str, Row]:
        """Rows of `statistics` over all turns, by metric."""
        return {row["metric"]: row for row in self.statistics if row["split"] == ALL}

    @cached_property
    def cost(self) -> Row:
        """The row of `cost_per_correct_answer`."""
        return self.rows(tables.COST_PER_CORRECT_ANSWER)[0]

    @cached_property
    def ceilings(self) -> list[Row]:
        """Rows of `complexity_ceiling`, the gold's axis first."""
        return self.rows(tables.COMPLEXITY_CEILING)

    @cached_property
    def levels(self) -> list[Row]:
        """Rows of `accuracy_by_complexity`."""
        return self.rows(tables.ACCURACY_BY_COMPLEXITY)

    @cached_property
    def error_groups(self) -> list[Row]:
        """Rows of `error_analysis`."""
        return self.rows(tables.ERROR_ANALYSIS)

    @cached_property
    def comparisons(self) -> list[Row]:
        """Rows of `model_comparisons` in which this very evaluation was compared with another model version's."""
        return pairs_of(self._record, self.partition)

    @cached_property
    def editions(self) -> list[Row]:
        """Rows of `gold_editions`; none of an evaluation older than them."""
        return self._rows_if_there(tables.GOLD_EDITIONS)

    @cached_property
    def overrides(self) -> list[Row]:
        """Rows of `gold_overrides` of turns that this evaluation has asked; none where nothing of it is overridden."""
        if not any(row["overridden_turns"] for row in self.editions):
            return []
        return sorted(self._rows_if_there(tables.GOLD_OVERRIDES), key=lambda row: row["source_line"])

    @cached_property
    def suspects(self) -> list[Row]:
        """Rows of `gold_suspects` of the suite."""
        return self._rows_if_there(tables.GOLD_SUSPECTS)

    @cached_property
    def planned(self) -> Planned:
        """From the last run that had the scope of what was generated."""
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
        """The responses are not a real model's."""
        return bool(self.model["simulated"])

    @property
    def turns(self) -> int:
        """Turns evaluated, every sample counted."""
        return int(self.results.num_rows)

    @cached_property
    def several_samples(self) -> bool:
        """Turns were asked more than once."""
        return any(sample > 0 for sample in self.results["sample"].unique().to_pylist())

    def _rows_if_there(self, table: Table) -> list[Row]:
        return [] if self._record.header(table, self._key(table)) is None else self.rows(table)

    def _came_later(self, table: Table) -> bool:
        """Whether the table is one that older evaluations lack and their reports do without."""
        return table in _LATER and self._record.header(table, self._key(table)) is None

    def _header(self, table: Table) -> Header:
        header = self._record.header(table, self._key(table))
        if header is None:
            part = self.partition
            place = f"{part.suite}, {part.model_version}, {part.eval_date}"
            raise UsageError(f"the record has no {table.name} of {place} yet; materialise what comes before first")
        return header

    def _key(self, table: Table) -> RecordKey:
        if table.key == "suite":
            return RecordKey.of_suite(self.partition.suite)
        if table.key == "model_version":
            return RecordKey.of_model_version(self.partition.model_version)
        return RecordKey.of(self.partition)
