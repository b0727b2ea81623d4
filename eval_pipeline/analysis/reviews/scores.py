"""The scores of recorded answers in columns: what decides which answers are drawn for review.

A suite may have hundreds of thousands of answers. As columns they take some megabytes, as Python values a hundred.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.analysis.reviews.answers import Place
from eval_pipeline.core.model import CALL_ERROR, Partition
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import JUDGEMENTS, TURN_RESULTS, arrow_schema
from eval_pipeline.tracks.capabilities import Audits
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.tabled.track_tables import turns_table

Verdicts = npt.NDArray[np.int8]
"""1 for right, 0 for wrong, `NONE` for no verdict."""
NONE = -1


@dataclass(frozen=True, slots=True)
class ReviewedScores:
    """The scores of one evaluation's answers, of those that have a response.

    Attributes:
        partition: the evaluation.
        turn_ids: the turn of each answer, strings.
        samples: its sample, int64.
        correct: the primary metric.
        judged: whether the LLM judge calls it the same as the gold; `NONE` if it was not asked.
        disputed: whether `correct` has a value that one of the track's strict metrics contradicts.
    """

    partition: Partition
    turn_ids: pa.Array
    samples: npt.NDArray[np.int64]
    correct: Verdicts
    judged: Verdicts
    disputed: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class AllScores:
    """The scores of several evaluations' answers, in the order of turn, model version, date and sample.

    Attributes:
        partitions: the evaluations.
        of: for each answer its place in `partitions`.
        turn_ids, samples, correct, judged, disputed: as in `ReviewedScores`.
    """

    partitions: Sequence[Partition]
    of: npt.NDArray[np.int64]
    turn_ids: pa.Array
    samples: npt.NDArray[np.int64]
    correct: Verdicts
    judged: Verdicts
    disputed: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.of)

    def place(self, index: int) -> tuple[Partition, Place]:
        """Returns evaluation and place in the record of the answer at an index."""
        partition = self.partitions[self.of[index]]
        day = str(partition.eval_date)
        return partition, (self.turn_ids[index].as_py(), partition.model_version, day, int(self.samples[index]))

    @cached_property
    def models_disagree(self) -> npt.NDArray[np.bool_]:
        """Whether some answer to the same turn is right and another one wrong."""
        # Answers to a turn stand together; a hash table of all turns would take more memory than all else here.
        other = pc.not_equal(self.turn_ids[1:], self.turn_ids[:-1]).to_numpy(zero_copy_only=False)
        turns = np.concatenate([np.zeros(min(len(self), 1), np.int64), np.cumsum(other)])
        right, wrong = np.zeros((2, len(self) + 1), bool)
        right[turns[self.correct == 1]] = True
        wrong[turns[self.correct == 0]] = True
        both: npt.NDArray[np.bool_] = (right & wrong)[turns]
        return both


def together(scores: Sequence[ReviewedScores]) -> AllScores:
    """Returns the scores of several different evaluations together, in the order of `AllScores`."""
    ordered = sorted(scores, key=lambda one: (one.partition.model_version, str(one.partition.eval_date)))
    turn_ids = pa.concat_arrays([one.turn_ids for one in ordered] or [pa.array([], pa.string())])
    of = np.repeat(np.arange(len(ordered)), [len(one.samples) for one in ordered])
    samples = np.concatenate([np.array([], np.int64), *(one.samples for one in ordered)])
    keys = pa.table({"turn": turn_ids, "of": of, "sample": samples})
    order = pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names])
    at = order.to_numpy()
    return AllScores(
        [one.partition for one in ordered],
        of[at],
        turn_ids.take(order),
        samples[at],
        *(
            np.concatenate([np.array([], kind), *(getattr(one, name) for one in ordered)])[at]
            for name, kind in (("correct", np.int8), ("judged", np.int8), ("disputed", np.bool_))
        ),
    )


def scores_of(inputs: Inputs) -> ReviewedScores:
    """Returns the scores of an evaluation's answers; without any if none are recorded."""
    rows = _columns(inputs, TURN_RESULTS, ("turn_id", "sample", "outcome", "correct"))
    turn_ids = rows["turn_id"].combine_chunks()
    samples = rows["sample"].to_numpy().astype(np.int64)
    correct = _verdicts(rows["correct"])
    answered = pc.invert(pc.or_kleene(pc.is_null(rows["outcome"]), pc.equal(rows["outcome"], CALL_ERROR)))
    where = AnswerPlaces(turn_ids, samples)
    judged, disputed = np.full(len(samples), NONE, np.int8), np.zeros(len(samples), bool)
    said = _columns(inputs, JUDGEMENTS, ("turn_id", "sample", "value", "error", "asked"))
    if len(said):
        said = said.filter(pc.and_(said["asked"], pc.and_(pc.is_null(said["error"]), pc.is_valid(said["value"]))))
        at, found = where.find(said)
        judged[at[found]] = pc.equal(said["value"], 1.0).to_numpy()[found]
    track = inputs.track
    names = list(dict.fromkeys(track.strict_metrics)) if isinstance(track, Audits) else []
    strict = _columns(inputs, turns_table(track), ("turn_id", "sample", *names)) if names else None
    if strict:
        at, found = where.find(strict)
        for name in names:
            told = _verdicts(pc.greater_equal(strict[name].cast(pa.float64()), 1.0))[found]
            own = correct[at[found]]
            disputed[at[found]] |= (told != NONE) & (own != NONE) & (told != own)
    kept = answered.to_numpy()
    of_answered = (values[kept] for values in (samples, correct, judged, disputed))
    return ReviewedScores(inputs.place, turn_ids.filter(answered.combine_chunks()), *of_answered)


class AnswerPlaces:
    """Finds the answers of one table in another by turn and sample."""

    def __init__(self, turn_ids: pa.Array, samples: npt.NDArray[np.int64]) -> None:
        self._turn_ids = turn_ids
        self._samples = samples

    def find(self, rows: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Returns for each row whether its answer was found, and its index (meaningless if it was not found)."""
        turn_ids, samples = rows["turn_id"].combine_chunks(), rows["sample"].to_numpy().astype(np.int64)
        if turn_ids.equals(self._turn_ids) and np.array_equal(samples, self._samples):
            return np.arange(len(samples)), np.ones(len(samples), bool)  # most often; needs no hash table of all turns
        sorted_keys, order, turns, span = self._index
        keys = _keys(turns, span, turn_ids, samples)
        if not len(order):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
        at = np.minimum(np.searchsorted(sorted_keys, keys), len(order) - 1)
        return order[at], (sorted_keys[at] == keys) & (samples < span)

    @cached_property
    def _index(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], pa.Array, int]:
        turns, span = pc.unique(self._turn_ids), int(self._samples.max(initial=0)) + 1
        keys = _keys(turns, span, self._turn_ids, self._samples)
        order = np.argsort(keys, kind="stable")
        return keys[order], order, turns, span


def _keys(turns: pa.Array, span: int, turn_ids: pa.Array, samples: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Returns a number for each turn and sample, `span` apart between turns; -1 for turns that are not in `turns`."""
    found = pc.fill_null(pc.index_in(turn_ids, value_set=turns), -1).to_numpy(zero_copy_only=False)
    return np.where(found < 0, -1, found.astype(np.int64) * span + samples)


def _verdicts(column: pa.ChunkedArray) -> Verdicts:
    found: Verdicts = pc.fill_null(column.cast(pa.int8()), NONE).to_numpy()
    return found


def _columns(inputs: Inputs, table: Table, columns: Sequence[str]) -> pa.Table:
    """Returns columns of a table, with the turn ids as plain strings; no rows if the table is not recorded."""

    def plain(rows: pa.Table) -> pa.Table:
        return rows.set_column(rows.column_names.index("turn_id"), "turn_id", rows["turn_id"].cast(pa.string()))

    if inputs.header(table) is None:
        return plain(arrow_schema(table).empty_table().select(list(columns)))
    return pa.concat_tables(map(plain, inputs.record.row_groups(table, inputs.key(table), columns)))
