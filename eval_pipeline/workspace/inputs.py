"""What a stage is handed, resolved once: no stage looks for a model version or a file of the record by itself."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import pyarrow as pa

from eval_pipeline.asking.answers import Counters
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.model import Case, Json, Partition
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.store.record import Header, Record, RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.suites import ScoredGold
from eval_pipeline.tracks.base import Track
from eval_pipeline.workspace.progress import counted
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.scope import Scope
from eval_pipeline.workspace.workspace import Progress, Silent, T, Workspace


@dataclass(frozen=True)
class Inputs:
    """A suite, or one evaluation of it, as a stage sees it. Nobody may write to what it gives.

    Attributes:
        partition: None for stages that look at the suite as a whole.
        run: the run that the stage is part of.
        scope: the part of the suite that is asked for.
        counts: what the stage asks is counted here, so that an exception leaves it behind too.
        held: what a stage computed for its settings and needs again when it runs.
    """

    workspace: Workspace
    suite: str
    partition: Partition | None = None
    run: RunContext = field(default_factory=RunContext)
    scope: Scope = field(default_factory=Scope)
    progress: Progress = field(default_factory=Silent)
    counts: Counters = field(default_factory=Counters)
    held: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, workspace: Workspace, partition: Partition, **more: Any) -> Self:
        """Those of an evaluation; `more` are other fields."""
        return cls(workspace, partition.suite, partition, **more)

    def anew(self, **changes: Any) -> Self:
        """The same for a stage that counts and holds by itself."""
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
        """The options of `suite.yaml`. Raises InputError where the file is wrong."""
        return self.workspace.suite(self.suite).require().options

    @cached_property
    def version(self) -> ModelVersion:
        """The model version. Raises UsageError where there is none of the partition's name."""
        return self.workspace.model_version(self.place.model_version)

    def require_names(self) -> None:
        """Raises UsageError where there is no such model version, or no such suite or track."""
        _ = self.version, self.track

    @property
    def place(self) -> Partition:
        """The partition, of a stage that has one."""
        assert self.partition is not None, "a stage of a whole suite has no partition"
        return self.partition

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases of the suite as the record has them. Raises UsageError where there are none yet."""
        return self.workspace.cases(self.suite)

    @property
    def gold(self) -> ScoredGold:
        """The gold by which turns are scored: that of the cases, with what people have overridden."""
        return self.workspace.gold(self.suite)

    def key(self, table: Table) -> RecordKey:
        """Which file of a table belongs to this suite, evaluation or model version."""
        if table.key == "suite":
            return RecordKey.of_suite(self.suite)
        if table.key == "model_version":
            return RecordKey.of_model_version(self.place.model_version)
        return RecordKey.of(self.place)

    def header(self, table: Table) -> Header | None:
        """What the file of a table says of itself; None where there is none."""
        return self.record.header(table, self.key(table))

    def read(self, table: Table, columns: Sequence[str] | None = None) -> pa.Table:
        """Rows of a table. Raises StoreError where there are none."""
        return self.record.read(table, self.key(table), columns)

    def hashes(self, tables: Iterable[Table]) -> dict[str, str]:
        """Content hash by name of the tables.

        Raises:
            UsageError: one of them is not in the record.
        """
        found = {}
        for table in tables:
            header = self.header(table)
            if header is None:
                asked = self.partition
                names = (self.suite, asked.model_version, str(asked.eval_date)) if asked else (self.suite,)
                place = ", ".join(names)
                raise UsageError(f"the record has no {table.name} of {place} yet; materialise what comes before first")
            found[table.name] = header.content_hash
        return found

    def combined_hash(self, tables: Iterable[Table]) -> str:
        """One hash over several tables: it changes when any of them does."""
        return json_hash(self.hashes(tables))

    def remembered(self, table: Table, load: Callable[[], T]) -> T:
        """What was last made of a table, by this process, if the table is still the same; else loads it.

        So what a stage has just written need not be read back by the next one.
        """
        return self.workspace.remembered(table.name, {"of": str(self.key(table))} | self.hashes((table,)), load)

    def hold(self, name: str, make: Callable[[], T]) -> T:
        """What `make` gives, made once for this stage."""
        if name not in self.held:
            self.held[name] = make()
        held: T = self.held[name]
        return held

    def label(self, what: str) -> str:
        """What a bar of this stage is called."""
        names = (self.suite, self.partition.model_version, what) if self.partition else (self.suite, what)
        return " · ".join(names)

    def counted(self, what: str, items: Iterable[T], total: int) -> Iterator[T]:
        """Passes the items on, with a bar that moves as they are taken; `total` is 0 where nobody knows."""
        return counted(self.progress, self.label(what), items, total)
