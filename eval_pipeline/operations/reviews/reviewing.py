"""Reviewing: adds people's reviews of answers, and draws answers to review."""

import getpass
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from eval_pipeline.analysis.reviews.answers import Answer, Place, answers_of, reviewed_evaluations
from eval_pipeline.analysis.reviews.drawing import NARROWEST, draw
from eval_pipeline.analysis.reviews.making import Reviewed, reviewed_of
from eval_pipeline.analysis.reviews.scores import scores_of, together
from eval_pipeline.chain.evaluation import stage_of
from eval_pipeline.chain.runner import run_stage
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_hash, parse_json
from eval_pipeline.core.model import Json, Partition
from eval_pipeline.core.reading.complaints import complaints, dotted
from eval_pipeline.operations.upkeep.keeping import deliver
from eval_pipeline.store.tables import REVIEW_STATISTICS, TURNS
from eval_pipeline.suites.reviews.files import add_review
from eval_pipeline.suites.reviews.queues import Queue, QueueItem, write_queue
from eval_pipeline.suites.reviews.review import (
    RIGHT,
    WRONG,
    AnswerKey,
    Review,
    asked_by_queues,
    by_answer,
    is_disputed,
    verdict_of,
)
from eval_pipeline.tracks.capabilities import Audits
from eval_pipeline.workspace.inputs import Inputs

TAGS = ("misread question", "wrong number", "wrong unit", "calculation", "made up", "form", "declined")
"""Initial failure tags; tags used by reviewers are offered in addition."""


def own_name() -> str:
    """Returns the name of the current user; empty if the system has none, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def correction_from(text: str | None, name: str) -> dict[str, Json] | None:
    """Parses a gold correction; None stays None. Raises UsageError if it is not a JSON object."""
    if text is None:
        return None
    try:
        found = parse_json(text)
    except ValueError as error:
        raise UsageError(f"{name} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise UsageError(f'{name} is not a JSON object; expected one such as {{"answer": 81.5}}')
    return found


@dataclass(frozen=True, slots=True)
class ReviewStatement:
    """A person's statement about an answer; fields as in a review."""

    who: str
    verdict: str
    gold_wrong: bool = False
    correction: Mapping[str, Json] | None = None
    tag: str | None = None
    note: str = ""
    queue: str | None = None
    gold_hash: str | None = None


@dataclass(frozen=True, slots=True)
class QueueProgress:
    """Progress of a queue.

    Attributes:
        reviewed: answers reviewed for the queue → the people who did.
    """

    queue: Queue
    reviewed: Mapping[AnswerKey, frozenset[str]] = field(default_factory=dict)


def review_answer(inputs: Inputs, item: QueueItem, said: ReviewStatement, reviewed: Reviewed | None = None) -> Review:
    """Adds a review of an answer to the files beside the suite; an earlier one by the same person is superseded.

    Args:
        inputs: the suite.
        item: the answer; its stratum does not matter.
        said: the person's statement.
        reviewed: the existing reviews beside the suite, if already read.

    Raises:
        UsageError: something in it is invalid.
        StoreError: the suite's folder cannot be written.
    """
    reviewed = reviewed or reviewed_of(inputs)
    _check_correction(inputs, said)
    before = next((one for one in reviewed.current if one.who == said.who.strip() and one.answer == item.answer), None)
    try:
        review = Review.new(
            who=said.who,
            turn_id=item.turn_id,
            model_version=item.model_version,
            eval_date=item.eval_date,
            sample=item.sample,
            response_hash=item.response_hash,
            gold_hash=said.gold_hash,
            verdict=said.verdict,
            gold_wrong=said.gold_wrong,
            correction=said.correction,
            tag=said.tag,
            note=said.note,
            queue=said.queue,
            probability=None if said.queue is None else _probability(reviewed, said.queue, item),
            supersedes=before.id if before else None,
        )
    except ValidationError as error:
        raise UsageError("; ".join(f"{dotted(place)}: {text}" for place, text in complaints(error, Review))) from error
    add_review(inputs.workspace.suite(inputs.suite).folder, review)
    return review


def answer_on_record(inputs: Inputs, turn: str, sample: int) -> QueueItem:
    """Returns an answer of an evaluation by its turn: `<case>#<index>`, or the public id.

    Raises:
        UsageError: there is none.
    """
    name = turn if turn.startswith(f"{inputs.suite}/") else f"{inputs.suite}/{turn}"
    found = next((one for one in answers_of(inputs, {name}) if one.place[3] == sample), None)
    if found is None:
        place = f"{inputs.place.model_version} of {inputs.place.eval_date}"
        raise UsageError(f"no answer of {place} to '{name}', sample {sample}; expected <case>#<index>, counted from 0")
    return found.item("")


def gold_hash_of(inputs: Inputs, turn: str) -> str | None:
    """Returns the hash of a turn's recorded gold."""
    own = inputs.anew(partition=None)
    if own.header(TURNS) is None:
        return None
    read = own.read(TURNS, ["turn_id", "gold"])
    pairs = zip(read["turn_id"].to_pylist(), read["gold"].to_pylist(), strict=True)
    return next((json_hash(parse_json(gold)) for name, gold in pairs if name == turn), None)


def draw_queue(inputs: Inputs, versions: Sequence[str] | None, by: str, size: int, seed: int) -> Queue:
    """Draws answers from the latest evaluations of model versions, and stores the queue beside the suite.

    Args:
        inputs: of the suite.
        versions: model versions; None for all.
        by: method of the draw, see `Queue`.
        size: number of answers.
        seed: of the draw.

    Raises:
        UsageError: there is nothing to draw from, or `size` is too small.
        StoreError: the suite's folder cannot be written.
    """
    chosen = reviewed_evaluations(inputs.workspace, inputs.suite, versions)
    scores = together([scores_of(inputs.anew(partition=partition)) for partition in chosen])
    known = _known(inputs, chosen) if by == NARROWEST else {}
    queue = draw(scores, by, size, seed, lambda drawn: _read(inputs, drawn), known)
    write_queue(inputs.workspace.suite(inputs.suite).folder, queue)
    return queue


def _known(inputs: Inputs, chosen: Sequence[Partition]) -> dict[Place, bool]:
    """Returns whether people call an answer right, of the answers of some evaluations that were reviewed before."""
    found: dict[Place, bool] = {}
    together = by_answer(reviewed_of(inputs).current)
    for partition in chosen:
        turns = {key.turn_id for key in together if key.model_version == partition.model_version}
        for answer in answers_of(inputs.anew(partition=partition), turns) if turns else ():
            if (verdict := verdict_of(together.get(answer.key, ()))) in {RIGHT, WRONG}:
                found[answer.place] = verdict == RIGHT
    return found


def _read(inputs: Inputs, drawn: Sequence[tuple[Partition, Place]]) -> list[Answer]:
    """Returns drawn answers with the hashes of their texts, which are read of these turns only."""
    turns: dict[Partition, set[str]] = {}
    for partition, place in drawn:
        turns.setdefault(partition, set()).add(place[0])
    read = (answer for one, names in turns.items() for answer in answers_of(inputs.anew(partition=one), names))
    found = {answer.place: answer for answer in read}
    if any(place not in found for _, place in drawn):
        raise UsageError("an evaluation was replaced while answers were drawn from it; draw again")
    return [found[place] for _, place in drawn]


def progress_of(reviewed: Reviewed) -> Iterator[QueueProgress]:
    """Yields the progress of each queue."""
    asked = asked_by_queues(reviewed.reviews)
    for queue in reviewed.queues.values():
        yield QueueProgress(queue, asked.get(queue.id, {}))


def disputed(reviewed: Reviewed) -> list[list[Review]]:
    """Returns the reviews of disputed answers, oldest first."""
    return [found for found in by_answer(reviewed.current).values() if is_disputed(found)]


def known_tags(reviewed: Reviewed) -> list[str]:
    """Returns failure tags to choose from: those in use, most frequent first, then the initial ones."""
    counts: dict[str, int] = {}
    for review in reviewed.current:
        if review.tag is not None:
            counts[review.tag] = counts.get(review.tag, 0) + 1
    return [*sorted(counts, key=lambda tag: (-counts[tag], tag)), *(tag for tag in TAGS if tag not in counts)]


def keep_reviews(inputs: Inputs) -> list[dict[str, Any]]:
    """Updates the tables of reviews in record and store; returns the rows of `review_statistics`."""
    run_stage(stage_of(None, "reviews"), inputs)
    deliver([stage_of(None, "comparison_published")], inputs, with_report=False)
    rows: list[dict[str, Any]] = inputs.read(REVIEW_STATISTICS).to_pylist()
    return rows


def evaluation_to_review(inputs: Inputs, model_version: str) -> Partition:
    """Returns the latest evaluation of a model version. Raises UsageError if there is none."""
    return reviewed_evaluations(inputs.workspace, inputs.suite, [model_version])[0]


def _check_correction(inputs: Inputs, said: ReviewStatement) -> None:
    """Raises UsageError if the correction contains fields that are not part of the gold."""
    if said.correction is None:
        return
    track = inputs.track
    allowed = track.gold_fields if isinstance(track, Audits) else ()
    unknown = [name for name in said.correction if name not in allowed]
    if unknown or not said.correction:
        known = ", ".join(allowed) or "nothing that can be corrected"
        raise UsageError(f"correction: unknown field '{unknown[0] if unknown else ''}'; the gold has {known}")


def _probability(reviewed: Reviewed, queue: str, item: QueueItem) -> float:
    found = reviewed.queues.get(queue)
    if found is None:
        raise UsageError(f"no queue '{queue}' beside the suite; known: {', '.join(reviewed.queues) or 'none'}")
    drawn = next((one for one in found.items if one.answer == item.answer), None)
    if drawn is None:
        raise UsageError(f"queue {queue} has not drawn this answer to '{item.turn_id}'; leave the queue out")
    return found.probability(drawn)
