"""The scored turns of evaluations, and their alignment for comparison."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eval_pipeline.analysis.aggregates.base import Codes, Floats, floats
from eval_pipeline.analysis.comparisons.evaluations import CompleteEvaluation
from eval_pipeline.core.covering.coverage import Coverage, turns_reached
from eval_pipeline.core.model import CALL_ERROR, Partition
from eval_pipeline.store.coverage import recorded_coverage, tries_of
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import TURN_RESULTS
from eval_pipeline.workspace.workspace import Workspace

_DIGEST_BYTES = 16
_ROWS = 10_000


class Coder:
    """Gives equal values equal codes, also in later calls. Codes count from 0 in the order of first occurrence."""

    def __init__(self) -> None:
        self._known: pa.Array | None = None

    def codes(self, values: pa.Array) -> Codes:
        """Returns the code of each value.

        Args:
            values: shape (N,); of the same type in every call, without NULL.
        """
        known = values.slice(0, 0) if self._known is None else self._known
        new = pc.unique(values.filter(pc.invert(pc.is_in(values, value_set=known))))
        self._known = pa.concat_arrays([known, new])
        codes: Codes = pc.index_in(values, value_set=self._known).to_numpy(zero_copy_only=False).astype(np.int64)
        return codes


def digests(table: pa.Table, columns: Sequence[str]) -> pa.Array:
    """Returns a digest of the columns of each row; equal digests mean equal values (BLAKE2b with 128 bits)."""
    made = []
    for start in range(0, table.num_rows, _ROWS):  # so that few of the rows are Python's objects at a time
        rows = zip(*(table[name].slice(start, _ROWS).to_pylist() for name in columns), strict=True)
        found = [hashlib.blake2b(repr(row).encode(), digest_size=_DIGEST_BYTES).digest() for row in rows]
        made.append(pa.array(found, pa.binary(_DIGEST_BYTES)))
    return pa.concat_arrays(made) if made else pa.array([], pa.binary(_DIGEST_BYTES))


_PLACE = ("turn_id", "sample")
_PLACE_TYPES = (pa.string(), pa.int64())
_KEY = ("turn_id", "sample", "question", "expected")
VALUES = ("correct", "tokens", "usd", "latency_ms", "answered")
"""What is compared of a turn; `answered` is 1 or 0."""


class Further(NamedTuple):
    """Columns of numbers that are compared as well: the table with a row per turn, and their names."""

    table: Table
    columns: Sequence[str]


@dataclass(frozen=True, slots=True)
class ScoredEvaluation:
    """The scored turns and samples of an evaluation.

    Attributes:
        places: code of each turn and sample, ascending; equal codes mean the same question, gold and sample.
        asked: code of each turn, question and sample, regardless of the gold; in the order of `places`.
        clusters: code of its conversation (or group of conversations).
        values: `correct`, `tokens`, `usd` and `latency_ms`, NaN where unknown; `answered`, 1 or 0.
    """

    places: Codes
    clusters: Codes
    values: Mapping[str, Floats]
    asked: Codes


NO_TURNS = ScoredEvaluation(np.array([], np.int64), np.array([], np.int64), {}, np.array([], np.int64))


class Paired(NamedTuple):
    """Two evaluations on their N common turns; each array has shape (N,).

    Attributes:
        places, clusters: as in `ScoredEvaluation`.
        first, second: the values of either, by name.
    """

    places: Codes
    clusters: Codes
    first: Mapping[str, Floats]
    second: Mapping[str, Floats]

    def where(self, chosen: NDArray[np.bool_]) -> "Paired":
        """Returns both on the chosen turns alone; the mask has shape (N,)."""
        if chosen.all():
            return self
        first, second = ({name: v[chosen] for name, v in side.items()} for side in (self.first, self.second))
        return Paired(self.places[chosen], self.clusters[chosen], first, second)


class TurnReader:
    """Reads scored turns, with codes that mean the same in every evaluation read."""

    def __init__(self, workspace: Workspace) -> None:
        self._record = workspace.record
        self._coverages: dict[Partition, Coverage] = {}
        self._places, self._clusters, self._asked = Coder(), Coder(), Coder()
        self._turns = pa.table({name: pa.array([], kind) for name, kind in zip(_PLACE, _PLACE_TYPES, strict=True)})

    def read(self, evaluated: CompleteEvaluation, further: Further | None = None) -> ScoredEvaluation:
        """Returns the turns of an evaluation that have a verdict, in codes.

        Args:
            evaluated: the evaluation.
            further: columns of numbers that are added to the values.
        """
        table = self.turns(evaluated, further)
        places = self._places.codes(table["place"].combine_chunks())
        new = table.select(_PLACE).filter(places >= self._turns.num_rows)  # in the order of their codes
        self._turns = pa.concat_tables([self._turns, new])
        asked = self._asked.codes(table["asked"].combine_chunks())
        clusters = self._clusters.codes(table["cluster"].combine_chunks())
        order = np.argsort(places)
        names = [*VALUES, *(further.columns if further else ())]
        values = {name: floats(table[name])[order] for name in names}
        return ScoredEvaluation(places[order], clusters[order], values, asked[order])

    def turns(self, evaluated: CompleteEvaluation, further: Further | None = None) -> pa.Table:
        """Returns a row for each turn that has a verdict: all that comparisons use of it, without any text of it.

        Columns: `turn_id`, `sample`, `place` and `asked` (digests of question and gold, and of the question alone),
        `cluster`, `VALUES`, and those of `further`.
        """
        if evaluated.held is not None:
            return _with_columns(evaluated.held.turns, further.columns if further else ())
        table = self._scored(evaluated)
        table = table.append_column("answered", pa.array(self._answered(evaluated, table)))
        added = self._further(evaluated, table, *further) if further else {}
        for name, found in added.items():
            table = table.append_column(name, pa.array(found, from_pandas=True))
        return table.drop_columns(["outcome"])

    def _scored(self, evaluated: CompleteEvaluation) -> pa.Table:
        """Returns the turns that have a verdict, with digests in the place of their questions and golds.

        A row group at a time, as the texts are the larger part.
        """
        columns, read = [*_KEY, "cluster", "outcome", *VALUES[:-1]], list[pa.Table]()
        for group in self._record.row_groups(TURN_RESULTS, RecordKey.of(evaluated.partition), columns):
            rows = group.filter(pa.compute.is_valid(group["correct"]))
            made = {"place": digests(rows, _KEY), "asked": digests(rows, _KEY[:-1])}
            rows = rows.drop_columns(["question", "expected"])
            for name, column in made.items():
                rows = rows.append_column(name, column)
            read.append(rows)
        return pa.concat_tables(read)

    def _further(
        self, evaluated: CompleteEvaluation, turns: pa.Table, source: Table, names: Sequence[str]
    ) -> dict[str, Floats]:
        """Returns columns of another table in the order of the turns; NaN where it has no row or value."""
        found = self._record.read(source, RecordKey.of(evaluated.partition), [*_PLACE, *names])
        at = pa.compute.index_in(digests(turns, _PLACE), value_set=digests(found, _PLACE))
        rows = at.fill_null(found.num_rows).to_numpy(zero_copy_only=False)
        return {name: np.append(floats(found[name]), np.nan)[rows] for name in names}

    def coverage(self, evaluated: CompleteEvaluation) -> Coverage:
        """Returns the coverage of an evaluation; unknown for evaluations of early versions."""
        if evaluated.held is not None:
            return evaluated.held.coverage
        place = evaluated.partition
        if place not in self._coverages:
            self._coverages[place] = recorded_coverage(self._record, place)
        return self._coverages[place]

    def _answered(self, evaluated: CompleteEvaluation, table: pa.Table) -> Floats:
        """Returns 1 for each turn that the model answered, else 0; attempts are read only if a call failed."""
        if not pa.compute.any(pa.compute.equal(table["outcome"], CALL_ERROR)).as_py():
            return np.ones(table.num_rows)
        key = RecordKey.of(evaluated.partition)
        reached = turns_reached(tries_of(lambda source, columns: self._record.read(source, key, columns)))
        places = zip(table["turn_id"].to_pylist(), table["sample"].to_pylist(), strict=True)
        return np.array([reached[place].answered for place in places], dtype=np.float64)

    def names(self, places: Codes) -> list[str]:
        """Returns turn ids, sorted, with `~<sample>` appended from the second sample on."""
        turns = self._turns.take(places).select(_PLACE).to_pydict()
        found = zip(*turns.values(), strict=True)
        return sorted(f"{turn_id}~{sample}" if sample else str(turn_id) for turn_id, sample in found)


def _with_columns(turns: pa.Table, names: Sequence[str]) -> pa.Table:
    """Returns the table with these columns; those that it lacks are unknown."""
    for name in names:
        if name not in turns.column_names:
            turns = turns.append_column(name, pa.nulls(turns.num_rows, pa.float64()))
    return turns


def with_other_gold(first: ScoredEvaluation, second: ScoredEvaluation) -> int:
    """Returns the number of common turns and samples that were scored by different golds."""
    asked = np.intersect1d(first.asked, second.asked, assume_unique=True).size
    return int(asked - np.intersect1d(first.places, second.places, assume_unique=True).size)


def paired(first: ScoredEvaluation, second: ScoredEvaluation) -> Paired:
    """Returns the common turns and samples; clusters are those of the first evaluation."""
    places, here, there = np.intersect1d(first.places, second.places, assume_unique=True, return_indices=True)
    mine, theirs = (
        {name: values[chosen] for name, values in scored.values.items()}
        for scored, chosen in ((first, here), (second, there))
    )
    return Paired(places, first.clusters[here], mine, theirs)
