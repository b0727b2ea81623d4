"""What the aggregates share: the turns of a partition as arrays, and writing the table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eval_pipeline.core.ids import json_hash
from eval_pipeline.stages.attempts.spending import turns_not_asked
from eval_pipeline.stages.score import scored_tables
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import METRIC_ERRORS, TURN_RESULTS
from eval_pipeline.tracks.capabilities import turn_tables_of
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs
from eval_pipeline.workspace.planned import planned_turns
from eval_pipeline.workspace.progress import busy
from eval_pipeline.workspace.track_tables import turns_table

Row = dict[str, Any]
Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate table and how its rows come about.

    Attributes:
        rows: from the partition's turns; an empty partition gives rows whose numbers are null, with the reason.
        headline: the numbers that people see first, from those rows.
        reads: tables of the record that it reads beyond those of scored turns.
        version: stands for the code where it is given: "the meaning is the same" however the code changes.
        scores: it runs metrics itself, so that their code counts.
        needs: columns of `<track>_turns` without which a track has no such aggregate.
    """

    table: Table
    rows: Callable[["Turns"], list[Row]]
    headline: Callable[[Sequence[Row]], Mapping[str, Any]]
    version: str = ""
    reads: tuple[Table, ...] = ()
    needs: tuple[str, ...] = ()
    scores: bool = False

    def fits(self, tables: Sequence[Table]) -> bool:
        """Whether there is such an aggregate of turns with these tables."""
        return set(self.needs) <= {column.name for table in tables for column in table.columns}


class Turns:
    """The turns of a partition as columns and arrays, each read when first asked for. Nobody may write to them."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs.anew()  # of the stage that is the first to ask it keeps nothing
        self.partition, self.track, self.options = inputs.place, inputs.track, inputs.options
        self.wide_name = turns_table(self.track).name
        self._floats: dict[str, Floats] = {}

    def __len__(self) -> int:
        return int(self.results.num_rows)

    def read(self, table: Table, columns: Sequence[str] | None = None) -> pa.Table:
        """Rows of one of the partition's tables."""
        return self.inputs.read(table, columns)

    @cached_property
    def results(self) -> pa.Table:
        """`turn_results`."""
        return self.read(TURN_RESULTS)

    @cached_property
    def wide(self) -> pa.Table:
        """`<track>_turns`."""
        return self.read(turns_table(self.track))

    @cached_property
    def further(self) -> dict[str, pa.Table]:
        """The track's further tables by name."""
        return {table.name: self.read(table) for table in turn_tables_of(self.track)}

    @cached_property
    def planned(self) -> int | None:
        """Turns that the run was to ask, every sample counted; None where no run is on record."""
        return planned_turns(self.inputs.workspace, self.partition)

    @cached_property
    def clusters(self) -> Codes:
        """Code of each turn's cluster."""
        return codes(self.results["cluster"])

    @cached_property
    def conversations(self) -> Codes:
        """Code of each turn's conversation; every sample of a case is one."""
        cases, samples = codes(self.results["case_id"]), self.results["sample"].to_numpy().astype(np.int64)
        conversations: Codes = cases * (int(samples.max(initial=0)) + 1) + samples
        return conversations

    @cached_property
    def whole(self) -> NDArray[np.bool_]:
        """Whether each turn's conversation was asked to its end: not where the budget of the run cut it short."""
        cut = {(turn.rpartition("#")[0], sample) for turn, sample in turns_not_asked(self.inputs)}
        if not cut:
            return np.ones(len(self), dtype=bool)
        places = zip(self.results["turn_id"].to_pylist(), self.results["sample"].to_pylist(), strict=True)
        return np.array([(turn.rpartition("#")[0], sample) not in cut for turn, sample in places], dtype=bool)

    def floats(self, column: str) -> Floats:
        """A column as floats, NULL as NaN; from the shared columns or the track's own."""
        if column not in self._floats:
            table = self.results if column in self.results.column_names else self.wide
            self._floats[column] = floats(table[column])
        return self._floats[column]

    @cached_property
    def metric_failures(self) -> Mapping[str, set[tuple[str, int]]]:
        """The turns and samples on which a metric failed, by metric."""
        failed: dict[str, set[tuple[str, int]]] = {}
        for row in self.read(METRIC_ERRORS, ["metric", "turn_id", "sample"]).to_pylist():
            failed.setdefault(row["metric"], set()).add((row["turn_id"], row["sample"]))
        return failed


def make(aggregate: Aggregate, inputs: Inputs, outputs: Outputs) -> None:
    """Makes an aggregate's table."""
    with busy(inputs.progress, inputs.label(aggregate.table.name.replace("_", " "))):
        outputs.rows(aggregate.table).extend(aggregate.rows(turns_of(inputs)))


def headline_of(aggregate: Aggregate, inputs: Inputs) -> Mapping[str, Any]:
    """The numbers of an aggregate that people see first."""
    return aggregate.headline(inputs.read(aggregate.table).to_pylist())


def turns_of(inputs: Inputs) -> Turns:
    """The partition's turns, which the aggregates of one process share."""
    place = {"partition": str(inputs.place)}  # partitions without turns have equal hashes
    sources = inputs.hashes(scored_tables(inputs.track))
    return inputs.workspace.remembered("turns", place | sources, lambda: Turns(inputs))


def options_of(inputs: Inputs) -> dict[str, str]:
    """What decides an aggregate beside the turns: the suite's options."""
    return {"options": json_hash(inputs.options)}


def floats(column: pa.ChunkedArray) -> Floats:
    """A column of numbers or booleans as floats, NULL as NaN."""
    numbers: Floats = column.cast(pa.float64()).to_numpy().astype(np.float64, copy=False)
    return numbers


def codes(column: pa.ChunkedArray) -> Codes:
    """A column of text as integer codes, in order of first appearance."""
    encoded = column.combine_chunks().dictionary_encode()
    indices = encoded.indices if isinstance(encoded, pa.DictionaryArray) else encoded.combine_chunks().indices
    found: Codes = indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def sums(values: Floats, groups: Codes) -> Floats:
    """Sum of the values of each group, for the groups that occur, in the order of their codes."""
    _, places = np.unique(groups, return_inverse=True)
    return np.bincount(places, weights=values).astype(np.float64) if len(values) else np.zeros(0)
