"""The inputs of a stage, resolved in one place: stages do not look for model versions or record files themselves."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.asking.answers import Counters
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.model import Case, Json, Partition
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.store.record import Header, Record, RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import CASES, GENERATIONS, TURNS
from eval_pipeline.suites.overrides import ScoredGold
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.capabilities import Acts
from eval_pipeline.workspace.asked.ranges import is_small, overlapping, ranges, spans, together
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.progress import counted
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.workspace import Progress, Silent, T, Workspace

if TYPE_CHECKING:
    from eval_pipeline.state.leases import Lease


@dataclass(frozen=True)
class Inputs:
    """A suite, or one evaluation of it, as a stage receives it. Its values must not be modified.

    Attributes:
        partition: the evaluation; None for stages that process the suite as a whole.
        run: the run that the stage belongs to.
        scope: the part of the suite to evaluate.
        counts: counts the stage's calls here, so that they are known even after an exception.
        held: values that a stage computed for its settings and needs again when it runs.
        within: positions of the cases to look at, for one shard of a stage; None for all.
        lease: which the stage holds while it runs, if stages of its kind take turns; None without a database.
    """

    workspace: Workspace
    suite: str
    partition: Partition | None = None
    run: RunContext = field(default_factory=RunContext)
    scope: Scope = field(default_factory=Scope)
    progress: Progress = field(default_factory=Silent)
    counts: Counters = field(default_factory=Counters)
    held: dict[str, Any] = field(default_factory=dict)
    within: range | None = None
    lease: "Lease | None" = None

    @classmethod
    def of(cls, workspace: Workspace, partition: Partition, **more: Any) -> Self:
        """Creates the inputs for an evaluation; `more` sets other fields."""
        return cls(workspace, partition.suite, partition, **more)

    def anew(self, **changes: Any) -> Self:
        """Returns a copy with changes and with empty counts and held values, for another stage."""
        fresh: dict[str, Any] = {"counts": Counters(), "held": {}, **changes}
        return replace(self, **fresh)

    @property
    def record(self) -> Record:
        """The record."""
        return self.workspace.record

    @cached_property
    def track(self) -> Track:
        """The suite's track."""
        return self.workspace.track(self.suite)

    @cached_property
    def options(self) -> Mapping[str, Json]:
        """The options of `suite.yaml`. Raises InputError if the file is wrong."""
        return self.workspace.suite(self.suite).require().options

    @cached_property
    def version(self) -> ModelVersion:
        """The model version. Raises UsageError if it does not exist."""
        return self.workspace.model_version(self.place.model_version)

    def require_names(self) -> None:
        """Raises UsageError if the model version, the suite or its track does not exist."""
        _ = self.version, self.track

    @property
    def place(self) -> Partition:
        """The partition; only for stages that have one."""
        assert self.partition is not None, "a stage of a whole suite has no partition"
        return self.partition

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases of the suite in the record, or of the shard. Raises UsageError if there are none yet."""
        if self.within is None:
            return self.workspace.cases(self.suite)
        return self.hold("cases", lambda: self.workspace.cases_within(self.suite, self.within or range(0)))

    def cases_with(self, ids: Collection[str]) -> tuple[Case, ...]:
        """Returns those of `cases` with these ids; of a range, the others are not even read."""
        if self.within is None:
            return tuple(case for case in self.cases if case.id in ids)
        return self.workspace.cases_within(self.suite, self.within, ids)

    @property
    def is_small(self) -> bool:
        """Whether cases and answers are few enough to be held in memory together."""
        return self._is_small(1.0)

    def _is_small(self, share: float) -> bool:
        size = self._bytes_a_turn() * self._turns()
        return is_small(round(self._turns() * share), round(size * share), acted=isinstance(self.track, Acts))

    def together(self, most: int) -> int:
        """Returns how many turns may be worked on at once, at most so many; fewer if their answers are long."""
        return together(most, self._bytes_a_turn())

    def parts(self) -> Iterator[Self]:
        """Yields the inputs for one range of cases after the other, in order; for few answers just these inputs."""
        cases = self.header(CASES)
        whole = range(cases.rows if cases else 0) if self.within is None else self.within
        count = max(1, cases.rows if cases else 0)
        if self._is_small(len(whole) / count):
            yield self
            return
        for within in ranges(whole, self._turns() / count, self._bytes_a_turn()):
            yield replace(self, held={}, within=within)

    def each_case(self) -> Iterator[Case]:
        """Yields `cases`; those of a large suite are in memory one range after the other."""
        return (case for part in self.parts() for case in part.cases)

    def _turns(self) -> int:
        """Returns the number of turns of the suite, or of the answers to them if those are more."""
        tables = (TURNS, GENERATIONS) if self.partition else (TURNS,)
        return max((header.rows for table in tables if (header := self.header(table))), default=0)

    def _bytes_a_turn(self) -> float:
        """Returns the bytes of an answer in the record on the average; 0 without any."""
        answers = self.header(GENERATIONS) if self.partition else None
        return answers.size / max(1, answers.rows) if answers else 0.0

    def rows_within(self, table: Table, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yields the rows of all cases, or of those of this range, one row group in memory at a time.

        Args:
            table: a table of the evaluation that has the column `case_id`.
            columns: the wanted columns.
        """
        if self.within is None:
            yield from self.record.row_groups(table, self.key(table), columns)
            return
        wanted = self.case_ids.slice(self.within.start, len(self.within)).combine_chunks()
        chosen = overlapping(self._spans(table), self.within)
        with_cases = list(dict.fromkeys((*columns, "case_id")))
        for group in self.record.row_groups(table, self.key(table), with_cases, chosen):
            yield group.filter(pc.is_in(group["case_id"], wanted)).select(columns)

    def read_within(self, table: Table, columns: Sequence[str]) -> pa.Table:
        """Returns the rows that `rows_within` yields."""
        return pa.concat_tables(list(self.rows_within(table, columns)) or [self.read(table, columns).slice(0, 0)])

    @property
    def case_ids(self) -> pa.ChunkedArray:
        """The ids of all cases of the suite, in its order."""
        return self.remembered((CASES,), lambda: self.read(CASES, ["case_id"])["case_id"], "ids of cases")

    def _spans(self, table: Table) -> list[range]:
        """Returns for each row group of a table the range of the cases that its rows belong to."""

        def read() -> list[range]:
            groups = list(self.record.row_groups(table, self.key(table), ["case_id"]))
            return spans(groups, self.case_ids)

        return self.remembered((table, CASES), read, f"places of {table.name}")

    @property
    def gold(self) -> ScoredGold:
        """The gold used for scoring: that of the cases, with people's overrides."""
        return self.workspace.gold(self.suite)

    def key(self, table: Table) -> RecordKey:
        """Returns the key of the table's file for this suite, evaluation or model version."""
        if table.key == "suite":
            return RecordKey.of_suite(self.suite)
        if table.key == "model_version":
            return RecordKey.of_model_version(self.place.model_version)
        return RecordKey.of(self.place)

    def header(self, table: Table) -> Header | None:
        """Returns the header of a table's file; None if it does not exist."""
        return self.record.header(table, self.key(table))

    def read(self, table: Table, columns: Sequence[str] | None = None) -> pa.Table:
        """Returns the rows of a table. Raises StoreError if its file does not exist."""
        return self.record.read(table, self.key(table), columns)

    def hashes(self, tables: Iterable[Table]) -> dict[str, str]:
        """Returns table name → content hash.

        Raises:
            UsageError: a table is not in the record.
        """
        found = {}
        for table in tables:
            header = self.header(table)
            if header is None:
                asked = self.partition
                names = (self.suite, asked.model_version, str(asked.eval_date)) if asked else (self.suite,)
                place = ", ".join(names)
                raise UsageError(f"the record has no {table.name} of {place} yet; materialise the earlier stages first")
            found[table.name] = header.content_hash
        return found

    def combined_hash(self, tables: Iterable[Table]) -> str:
        """Returns one hash over several tables."""
        return json_hash(self.hashes(tables))

    def remembered(self, tables: Sequence[Table], load: Callable[[], T], name: str = "") -> T:
        """Returns the value that this process last made from tables if they have not changed; otherwise loads it.

        What a stage has just written need not be read back by the next one. The value has the main table's name unless
        it is given another.
        """
        main = tables[0]
        return self.workspace.remembered(name or main.name, {"of": str(self.key(main))} | self.hashes(tables), load)

    def hold(self, name: str, make: Callable[[], T]) -> T:
        """Returns the result of `make`, which is called once per stage."""
        if name not in self.held:
            self.held[name] = make()
        held: T = self.held[name]
        return held

    def label(self, what: str) -> str:
        """Returns the label of a progress bar of this stage."""
        names = (self.suite, self.partition.model_version, what) if self.partition else (self.suite, what)
        return " · ".join(names)

    def counted(self, what: str, items: Iterable[T], total: int, unit: str = "turns") -> Iterator[T]:
        """Yields the items, advances a progress bar and shows it to those who watch; `total` is 0 if unknown.

        Where they wish that the run ends, it does so between two items.
        """
        found = counted(self.progress, self.label(what), items, total)
        return found if self.run.watch is None else self.run.watch.working(what, found, total, unit)
