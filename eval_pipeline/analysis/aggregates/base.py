"""Shared by all aggregates: the turns of an evaluation as arrays, and writing the table."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eval_pipeline.analysis.aggregates.aggregate import Aggregate as Aggregate  # plug-ins import it from here
from eval_pipeline.analysis.aggregates.aggregate import Row as Row
from eval_pipeline.stages.spending import turns_not_asked
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import METRIC_ERRORS, TURN_RESULTS, arrow_schema
from eval_pipeline.workspace.asked.places import places_of_rows
from eval_pipeline.workspace.asked.planned import planned_scope, planned_turns
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs
from eval_pipeline.workspace.progress import busy
from eval_pipeline.workspace.tabled.track_tables import scored_tables, turns_table

if TYPE_CHECKING:
    from eval_pipeline.analysis.draws.looks import Draw

DRAWN = "the turns were drawn with unequal probabilities, and this figure is not weighted by them"
_REASONS = ("reason", "usd_reason")
Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


class Turns:
    """The turns of an evaluation as columns and arrays, each read on first access. They must not be modified."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs.anew()  # keeps nothing of the stage that happens to ask first
        self.partition, self.track, self.options = inputs.place, inputs.track, inputs.options
        self.wide_name = turns_table(self.track).name
        self._floats: dict[str, Floats] = {}

    def __len__(self) -> int:
        return int(self.results.num_rows)

    def read(self, table: Table, columns: Sequence[str] | None = None) -> pa.Table:
        """Returns the rows of one of the evaluation's tables."""
        return self.inputs.read(table, columns)

    def groups(self, table: Table, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yields the rows of one of the evaluation's tables, one row group in memory at a time."""
        return self.inputs.rows_within(table, columns)

    @cached_property
    def results(self) -> "pa.Table | ReadByColumn":
        """The table `turn_results`."""
        return self._turns_table(TURN_RESULTS)

    @cached_property
    def wide(self) -> "pa.Table | ReadByColumn":
        """The table `<track>_turns`."""
        return self._turns_table(turns_table(self.track))

    def _turns_table(self, table: Table) -> "pa.Table | ReadByColumn":
        return self.read(table) if self.inputs.is_small else ReadByColumn(self, table)

    @cached_property
    def further(self) -> dict[str, pa.Table]:
        """The track's further tables, by name."""
        return {table.name: self.read(table) for table in self.track.turn_tables}

    @cached_property
    def planned(self) -> int | None:
        """Planned number of turns times samples; None if no run is recorded."""
        return planned_turns(self.inputs.workspace, self.partition)

    @cached_property
    def clusters(self) -> Codes:
        """Code of each turn's cluster."""
        return codes(self.results["cluster"])

    @cached_property
    def conversations(self) -> Codes:
        """Code of each turn's conversation; each sample of a case is a separate conversation."""
        cases, samples = codes(self.results["case_id"]), self.results["sample"].to_numpy().astype(np.int64)
        conversations: Codes = cases * (int(samples.max(initial=0)) + 1) + samples
        return conversations

    @cached_property
    def whole(self) -> NDArray[np.bool_]:
        """Whether each turn's conversation was asked completely, i.e. not cut short by the budget."""
        cut = {(turn.rpartition("#")[0], sample) for turn, sample in turns_not_asked(self.inputs)}
        if not cut:
            return np.ones(len(self), dtype=bool)
        places = zip(self.results["turn_id"].to_pylist(), self.results["sample"].to_pylist(), strict=True)
        return np.array([(turn.rpartition("#")[0], sample) not in cut for turn, sample in places], dtype=bool)

    @cached_property
    def decidable(self) -> NDArray[np.bool_]:
        """Whether every turn of each turn's conversation could be scored."""
        unscored = np.isnan(self.floats("correct"))
        if not unscored.any():
            return np.ones(len(self), dtype=bool)
        return ~np.isin(self.conversations, self.conversations[unscored])

    @cached_property
    def draw(self) -> "Draw | None":
        """How the cases were drawn, with the estimates at each look; None if all cases or a plain part were asked."""
        scope = Scope.from_label(planned_scope(self.inputs.workspace, self.partition))
        if not scope.is_drawn:
            return None
        from eval_pipeline.analysis.draws.reading import draw_of

        return draw_of(self.inputs, scope)

    def floats(self, column: str) -> Floats:
        """Returns a column as floats, with NULL as NaN; from the shared columns or the track's own."""
        if (known := self._floats.get(column)) is not None:
            return known
        table = self.results if column in self.results.column_names else self.wide
        found = floats(table[column])
        if self.inputs.is_small:
            self._floats[column] = found
        return found

    def failed(self, metric: str) -> NDArray[np.bool_] | None:
        """Returns on which turns a metric failed; None if on none."""
        failures = self._metric_errors.filter(pc.equal(self._metric_errors["metric"], metric))
        if not failures.num_rows:
            return None
        places = places_of_rows(self.wide.select(["turn_id", "sample"]))
        found: NDArray[np.bool_] = pc.is_in(places, places_of_rows(failures)).to_numpy(zero_copy_only=False)
        return found

    @cached_property
    def _metric_errors(self) -> pa.Table:
        return self.read(METRIC_ERRORS, ["metric", "turn_id", "sample"])


class ReadByColumn:
    """A table with many rows, as `pyarrow.Table`, of which only the columns that are asked for are read, each time."""

    def __init__(self, turns: Turns, table: Table) -> None:
        self._turns, self._table = turns, table
        self.column_names = arrow_schema(table).names
        self.num_rows = int(turns.read(table, self.column_names[:1]).num_rows)

    def __getitem__(self, column: str) -> pa.ChunkedArray:
        return self._turns.read(self._table, [column])[column]

    def select(self, columns: Sequence[str]) -> pa.Table:
        """Returns some columns."""
        return self._turns.read(self._table, columns)

    def __getattr__(self, name: str) -> Any:
        """Returns what else a table has; for this, all of it is read."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._turns.read(self._table), name)


class NoTurns(Turns):
    """An evaluation as if no turn had been asked, for aggregates that would treat drawn turns as a fair sample."""

    def read(self, table: Table, columns: Sequence[str] | None = None) -> pa.Table:
        """Returns the table without any rows."""
        return super().read(table, columns).slice(0, 0)

    def groups(self, table: Table, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yields the table without any rows."""
        yield arrow_schema(table).empty_table().select(list(columns))


def make(aggregate: Aggregate, inputs: Inputs, outputs: Outputs) -> None:
    """Computes and writes an aggregate's tables."""
    with busy(inputs.progress, inputs.label(aggregate.table.name.replace("_", " "))):
        turns = turns_of(inputs)
        if turns.draw is None or aggregate.knows_draws:
            outputs.rows(aggregate.table).extend(aggregate.rows(turns))
        else:
            outputs.rows(aggregate.table).extend(unweighted(aggregate.rows(NoTurns(inputs))))
        if aggregate.beside is not None:
            table, rows = aggregate.beside
            outputs.rows(table).extend(rows(turns))


def unweighted(rows: Sequence[Row]) -> list[Row]:
    """Returns rows without figures, with the reason that the turns were drawn."""
    return [{name: DRAWN if name in _REASONS else value for name, value in row.items()} for row in rows]


def headline_of(aggregate: Aggregate, inputs: Inputs) -> Mapping[str, Any]:
    """Returns the most important numbers of a recorded aggregate."""
    return aggregate.headline(inputs.read(aggregate.table).to_pylist())


def turns_of(inputs: Inputs) -> Turns:
    """Returns the evaluation's turns, which all aggregates in this process share."""
    place = {"partition": str(inputs.place)}  # evaluations without turns have equal hashes
    sources = inputs.hashes(scored_tables(inputs.track))
    return inputs.workspace.remembered("turns", place | sources, lambda: Turns(inputs))


def floats(column: pa.ChunkedArray) -> Floats:
    """Converts a column of numbers or booleans to floats, with NULL as NaN."""
    numbers: Floats = column.cast(pa.float64()).to_numpy().astype(np.float64, copy=False)
    return numbers


def codes(column: pa.ChunkedArray) -> Codes:
    """Converts a text column to integer codes, in order of first appearance."""
    found, _ = texts_coded(column)
    return found


def texts_coded(column: pa.ChunkedArray) -> tuple[Codes, list[str]]:
    """Returns a code for each text of a column, in order of first appearance, and the text of each code.

    NULL becomes the empty text.
    """
    encoded = column.fill_null("").combine_chunks().dictionary_encode()
    whole = encoded if isinstance(encoded, pa.DictionaryArray) else encoded.combine_chunks()
    found: Codes = whole.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return found, whole.dictionary.to_pylist()


def sums(values: Floats, groups: Codes) -> Floats:
    """Returns the sum of values for each group that occurs, in the order of group codes."""
    _, places = np.unique(groups, return_inverse=True)
    return np.bincount(places, weights=values).astype(np.float64) if len(values) else np.zeros(0)
