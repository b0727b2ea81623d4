"""The recorded answers in the form needed for reviews and queues."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.analysis.comparisons.evaluations import evaluations_of, latest
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.model import Json, Partition
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import GENERATIONS, JUDGEMENTS, RECOVERY_ATTEMPTS, TURN_RESULTS
from eval_pipeline.suites.reviews.queues import QueueItem
from eval_pipeline.suites.reviews.review import AnswerKey, response_hash
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.workspace import Workspace

_BATCH = 1000
Place = tuple[str, str, str, int]
"""Turn id, model version, date as ISO text, and sample."""
_At = tuple[str, int]
"""Turn id and sample."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of an evaluation, with its scores and the hash of its text.

    Attributes:
        place: its place in the record.
        partition: its evaluation.
        correct: the primary metric; None if it gives no value.
        judged: whether the LLM judge calls it the same as the gold; None if it was not asked.
        cluster: shared by answers that are not independent.
        simulated: whether a stand-in gave it.
        response_hash: hash of the last attempt's response.
        tags: the tags of its case.
    """

    place: Place
    partition: Partition
    correct: bool | None
    judged: bool | None = None
    _: KW_ONLY
    cluster: str
    simulated: bool
    response_hash: str
    tags: frozenset[str] = frozenset()

    @property
    def turn_id(self) -> str:
        """The turn that was answered."""
        return self.place[0]

    @property
    def key(self) -> AnswerKey:
        """The key under which reviews refer to the answer."""
        return AnswerKey(self.turn_id, self.partition.model_version, self.response_hash)

    def item(self, stratum: str) -> QueueItem:
        """Returns the answer as an item of a queue."""
        return QueueItem(
            turn_id=self.turn_id,
            model_version=self.partition.model_version,
            eval_date=self.partition.eval_date,
            sample=self.place[3],
            response_hash=self.response_hash,
            stratum=stratum,
            metric=self.correct,
            judge=self.judged,
        )


def answers_of(inputs: Inputs, turns: Collection[str]) -> list[Answer]:
    """Returns the recorded answers of an evaluation to some turns, by their ids, in the order of the record."""
    judged, hashes = _judged(inputs, turns), _response_hashes(inputs, turns)
    columns = ("turn_id", "sample", "correct", "cluster", "simulated", "tags")
    return [
        Answer(
            (turn, inputs.place.model_version, str(inputs.place.eval_date), sample),
            inputs.place,
            correct,
            judged.get((turn, sample)),
            cluster=cluster,
            simulated=simulated,
            response_hash=hashes.get((turn, sample), response_hash(None)),
            tags=frozenset(parse_json(tags)),
        )
        for turn, sample, correct, cluster, simulated, tags in _rows(inputs, TURN_RESULTS, columns, turns)
    ]


def reviewed_evaluations(workspace: Workspace, suite: str, versions: Sequence[str] | None = None) -> list[Partition]:
    """Returns the latest evaluation of each model version to be reviewed.

    Args:
        workspace: the workspace.
        suite: the suite.
        versions: names; by default all in use, with stand-ins only if there are no others.

    Raises:
        UsageError: a named model version has no evaluation, or none has.
    """
    found = evaluations_of(workspace, suite)
    for name in versions or ():
        if name not in found:
            known = ", ".join(sorted(found)) or "none"
            raise UsageError(f"'{name}' has no evaluation of '{suite}'; those that have: {known}")
    chosen = [latest(found[name]) for name in (dict.fromkeys(versions) if versions else sorted(found))]
    if not versions:
        used = [one for one in chosen if not workspace.is_retired(one.partition.model_version)]
        chosen = [one for one in used if not one.simulated] or used
    if not chosen:
        raise UsageError(f"'{suite}' has no evaluation to review; `eval-pipeline run --suite {suite}` makes one")
    return [one.partition for one in chosen]


def current_hash(workspace: Workspace, partitions: Collection[Partition]) -> list[list[str]]:
    """Returns hashes that change with the answers of these evaluations or their judgements."""
    found = []
    for place in sorted(partitions, key=str):
        headers = [workspace.record.header(table, RecordKey.of(place)) for table in (TURN_RESULTS, JUDGEMENTS)]
        found.append([str(place), *("" if header is None else header.content_hash for header in headers)])
    return found


def _rows(inputs: Inputs, table: Table, columns: Sequence[str], turns: Collection[str]) -> Iterator[tuple[Any, ...]]:
    """Yields the rows of a table for some turns, without ever holding more than one row group in memory.

    Args:
        inputs: the evaluation.
        table: a table of evaluations; if it is not recorded, it has no rows.
        columns: names of the wanted columns; the first is `turn_id`.
        turns: ids of the wanted turns.
    """
    if inputs.header(table) is None:
        return
    wanted = pa.array(sorted(turns), pa.string())
    for group in inputs.record.row_groups(table, inputs.key(table), columns):
        group = group.filter(pc.is_in(group["turn_id"].cast(pa.string()), value_set=wanted))
        for batch in group.to_batches(max_chunksize=_BATCH):  # as Python values, columns take several times the memory
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def results_of(inputs: Inputs, turns: Collection[str]) -> Mapping[AnswerKey, Json]:
    """Returns what the answers of an evaluation to some turns say, without those that could not be read."""
    return {
        AnswerKey(turn, inputs.place.model_version, response_hash(response)): parse_json(result)
        for (turn, _), (response, result) in _last(inputs, turns, "response", "result").items()
        if result is not None
    }


def _response_hashes(inputs: Inputs, turns: Collection[str]) -> Mapping[_At, str]:
    """Returns the hash of the last attempt's response."""
    return {at: response_hash(response) for at, (response,) in _last(inputs, turns, "response").items()}


def _last(inputs: Inputs, turns: Collection[str], *columns: str) -> Mapping[_At, tuple[Any, ...]]:
    """Returns columns of the last attempts."""
    last: dict[_At, tuple[int, tuple[Any, ...]]] = {}
    for table in (GENERATIONS, RECOVERY_ATTEMPTS):
        for turn, sample, number, *values in _rows(inputs, table, ("turn_id", "sample", "number", *columns), turns):
            if number >= last.get((turn, sample), (-1, ()))[0]:
                last[turn, sample] = number, tuple(values)
    return {at: values for at, (_, values) in last.items()}


def _judged(inputs: Inputs, turns: Collection[str]) -> Mapping[_At, bool]:
    rows = _rows(inputs, JUDGEMENTS, ("turn_id", "sample", "value", "error", "asked"), turns)
    return {
        (turn, sample): value == 1.0
        for turn, sample, value, error, asked in rows
        if asked and error is None and value is not None
    }
