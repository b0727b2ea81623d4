"""Makes `reviews` and `review_statistics` from the files beside a suite."""

from collections.abc import Mapping, Sequence
from datetime import UTC
from itertools import chain
from typing import Any, NamedTuple

from eval_pipeline.analysis.reviews.answers import Answer, Place, answers_of, current_hash
from eval_pipeline.analysis.reviews.figures import figure_rows
from eval_pipeline.core.errors import Problem
from eval_pipeline.core.ids import json_hash, json_text
from eval_pipeline.core.model import Partition
from eval_pipeline.store.tables import REVIEW_STATISTICS, REVIEWS
from eval_pipeline.suites.reviews.files import read_reviews
from eval_pipeline.suites.reviews.queues import Queue, read_queues
from eval_pipeline.suites.reviews.review import Review, current
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs
from eval_pipeline.workspace.progress import busy

Row = dict[str, Any]


class Reviewed(NamedTuple):
    """The contents of the review files beside a suite.

    Attributes:
        reviews: each once, sorted by time; including superseded ones.
        queues: the queues by id, oldest first.
        problems: invalid lines and files.
    """

    reviews: Sequence[Review]
    queues: Mapping[str, Queue]
    problems: Sequence[Problem]

    @property
    def current(self) -> list[Review]:
        """The reviews that count."""
        return current(self.reviews)

    def turns(self, suite: str) -> dict[Partition, set[str]]:
        """Returns evaluation → ids of the turns whose answers reviews and queues refer to."""
        said = ((one.model_version, one.eval_date, one.turn_id) for one in self.reviews)
        drawn = (
            (one.model_version, one.eval_date, one.turn_id) for queue in self.queues.values() for one in queue.items
        )
        found: dict[Partition, set[str]] = {}
        for version, day, turn in chain(said, drawn):
            found.setdefault(Partition(suite, version, day), set()).add(turn)
        return found


def reviewed_of(inputs: Inputs) -> Reviewed:
    """Reads the review files beside the suite; reviews of another suite's turns are reported as problems."""
    source = inputs.workspace.suites.get(inputs.suite)
    if source is None:  # the suite is gone, and its reviews with it
        return Reviewed((), {}, ())
    found = read_reviews(source.folder)
    queues, wrong = read_queues(source.folder)
    own = [review for review in found.reviews if review.turn_id.startswith(f"{inputs.suite}/")]
    other = len(found.reviews) - len(own)
    folder = f"{source.folder.name}/reviews"
    told = [Problem(folder, None, "turn_id", f"{other} reviews are of turns of another suite")] if other else []
    return Reviewed(own, queues, (*found.problems, *wrong, *told))


def make_reviews(inputs: Inputs, outputs: Outputs) -> None:
    """Makes the tables `reviews` and `review_statistics` of a suite."""
    with busy(inputs.progress, inputs.label("reviews")):
        reviewed = inputs.hold("reviewed", lambda: reviewed_of(inputs))
        answers = reviewed_answers(inputs, reviewed)
        counting = {review.id for review in reviewed.current}
        outputs.rows(REVIEWS).extend(review_rows(reviewed.reviews, counting, answers))
        outputs.rows(REVIEW_STATISTICS).extend(figure_rows(reviewed.reviews, reviewed.queues, answers))


def reviews_and_answers(inputs: Inputs) -> dict[str, str]:
    """Returns what decides both tables: hashes of the reviews, the queues and the reviewed answers."""
    reviewed = inputs.hold("reviewed", lambda: reviewed_of(inputs))
    said = [*(review.line() for review in reviewed.reviews), *reviewed.queues]
    of = current_hash(inputs.workspace, reviewed.turns(inputs.suite))
    return {"reviews": json_hash(said), "answers": json_hash(of)}


def reviewed_answers(inputs: Inputs, reviewed: Reviewed) -> dict[Place, Answer]:
    """Returns the answers that reviews and queues refer to, as far as they are still recorded."""
    wanted = sorted(reviewed.turns(inputs.suite).items(), key=str)
    found = (answer for partition, turns in wanted for answer in answers_of(inputs.anew(partition=partition), turns))
    return {answer.place: answer for answer in found}


def review_rows(reviews: Sequence[Review], counting: set[str], answers: Mapping[Place, Answer]) -> list[Row]:
    """Returns the rows of `reviews`."""
    rows: list[Row] = []
    for review in reviews:
        answer = answers.get((review.turn_id, review.model_version, str(review.eval_date), review.sample))
        same = answer is not None and answer.response_hash == review.response_hash
        seen = answer if same else None
        case, _, index = review.turn_id.partition("/")[2].rpartition("#")
        row: Row = review.model_dump(exclude={"id", "at", "correction"})
        row |= {"review_id": review.id, "said_at": review.at.astimezone(UTC).replace(tzinfo=None), "case_id": case}
        row |= {"turn_index": int(index), "is_current": review.id in counting}
        row |= {"correction": None if review.correction is None else json_text(review.correction)}
        row |= {"seen_response": same, "metric_correct": seen.correct if seen else None}
        row |= {"simulated": answer.simulated if answer else None}
        rows.append(row | {"judge_correct": seen.judged if seen else None})
    return rows
