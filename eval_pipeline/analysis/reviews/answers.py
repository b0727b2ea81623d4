"""The answers on record, as reviews and queues see them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from eval_pipeline.analysis.comparisons.evaluations import evaluations_of, latest
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import CALL_ERROR, Partition
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import GENERATIONS, JUDGEMENTS, RECOVERY_ATTEMPTS, TURN_RESULTS
from eval_pipeline.suites.reviews.queues import QueueItem
from eval_pipeline.suites.reviews.review import AnswerKey, response_hash
from eval_pipeline.tracks.capabilities import Audits
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.track_tables import turns_table
from eval_pipeline.workspace.workspace import Workspace

_BATCH = 1000
Place = tuple[str, str, str, int]
"""Turn, model version, date as ISO text and sample."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A scored answer of an evaluation.

    Attributes:
        cluster: answers that are not independent share it.
        response_hash: of the response of the last attempt.
        answered: there is a response.
        correct: what the primary metric says; None where it says nothing.
        judged: whether the LLM judge calls it the same as the gold; None where it was not asked.
        simulated: a stand-in's, not a model's.
        strict: what the track's strict metrics say, of those that say something.
    """

    turn_id: str
    case_id: str
    turn_index: int
    cluster: str
    partition: Partition
    sample: int
    response_hash: str
    answered: bool
    correct: bool | None
    judged: bool | None
    simulated: bool
    strict: tuple[bool, ...] = ()

    @property
    def key(self) -> AnswerKey:
        """What a review of it says that it is of."""
        return AnswerKey(self.turn_id, self.partition.model_version, self.response_hash)

    @property
    def place(self) -> Place:
        """Where it is in the record."""
        return self.turn_id, self.partition.model_version, str(self.partition.eval_date), self.sample

    def item(self, stratum: str) -> QueueItem:
        """It as an item of a queue."""
        return QueueItem(
            turn_id=self.turn_id,
            model_version=self.partition.model_version,
            eval_date=self.partition.eval_date,
            sample=self.sample,
            response_hash=self.response_hash,
            stratum=stratum,
        )


def answers_of(inputs: Inputs) -> list[Answer]:
    """The scored answers of an evaluation, in the order of their turns; none where the record has none."""
    if inputs.header(TURN_RESULTS) is None:
        return []
    rows = inputs.read(
        TURN_RESULTS, ["turn_id", "case_id", "turn_index", "cluster", "sample", "outcome", "correct", "simulated"]
    ).to_pylist()
    hashes, judged, strict = _responses(inputs), _judged(inputs), _strict(inputs)
    return [
        Answer(
            row["turn_id"],
            row["case_id"],
            row["turn_index"],
            row["cluster"],
            inputs.place,
            row["sample"],
            hashes.get((row["turn_id"], row["sample"]), response_hash(None)),
            row["outcome"] not in {None, CALL_ERROR},
            row["correct"],
            judged.get((row["turn_id"], row["sample"])),
            row["simulated"],
            strict.get((row["turn_id"], row["sample"]), ()),
        )
        for row in rows
    ]


def reviewed_evaluations(workspace: Workspace, suite: str, versions: Sequence[str] | None = None) -> list[Partition]:
    """The latest evaluation of each model version that is to be reviewed.

    Args:
        workspace: where they are.
        suite: the suite.
        versions: names; by default those in use, stand-ins only where there are no others.

    Raises:
        UsageError: one that is named has no evaluation, or none has.
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
    """What changes whenever an answer of these evaluations, or what is said of it, does."""
    found = []
    for place in sorted(partitions, key=str):
        headers = [workspace.record.header(table, RecordKey.of(place)) for table in (TURN_RESULTS, JUDGEMENTS)]
        found.append([str(place), *("" if header is None else header.content_hash for header in headers)])
    return found


def _responses(inputs: Inputs) -> Mapping[tuple[str, int], str]:
    """Hash of the response of the last attempt at each turn and sample."""
    last: dict[tuple[str, int], tuple[int, str]] = {}
    for table in (GENERATIONS, RECOVERY_ATTEMPTS):
        if inputs.header(table) is None:
            continue
        read = inputs.read(table, ["turn_id", "sample", "number", "response"])
        for batch in read.to_batches(max_chunksize=_BATCH):  # as Python's texts they take several times the room
            for turn, sample, number, response in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                if number >= last.get((turn, sample), (-1, ""))[0]:
                    last[turn, sample] = number, response_hash(response)
    return {place: hashed for place, (_, hashed) in last.items()}


def _judged(inputs: Inputs) -> Mapping[tuple[str, int], bool]:
    if inputs.header(JUDGEMENTS) is None:
        return {}
    rows = inputs.read(JUDGEMENTS, ["turn_id", "sample", "value", "error", "asked"]).to_pylist()
    return {
        (row["turn_id"], row["sample"]): row["value"] == 1.0
        for row in rows
        if row["asked"] and row["error"] is None and row["value"] is not None
    }


def _strict(inputs: Inputs) -> Mapping[tuple[str, int], tuple[bool, ...]]:
    track = inputs.track
    names = list(dict.fromkeys(track.strict_metrics)) if isinstance(track, Audits) else []
    if not names or inputs.header(turns_table(track)) is None:
        return {}
    rows = inputs.read(turns_table(track), ["turn_id", "sample", *names]).to_pylist()
    return {
        (row["turn_id"], row["sample"]): tuple(bool(row[name] >= 1) for name in names if row[name] is not None)
        for row in rows
    }
