"""A reviewed answer: what people say of it, beside what metric and judge say."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval_pipeline.analysis.reviews.answers import Answer
from eval_pipeline.suites.reviews.queues import QueueItem
from eval_pipeline.suites.reviews.review import AnswerKey, Review, verdict_of


@dataclass(frozen=True, slots=True)
class ReviewedUnit:
    """A reviewed answer.

    Attributes:
        reviews: the reviews that count.
        answer: the recorded answer; None if it is gone or its response has changed.
        item: how a queue has drawn it; None if no queue did.
    """

    key: AnswerKey
    reviews: Sequence[Review]
    answer: Answer | None
    item: QueueItem | None = None

    @property
    def verdict(self) -> str | None:
        """The majority verdict; None if it is a tie."""
        return verdict_of(self.reviews)

    @property
    def gold_wrong(self) -> bool:
        """Whether most reviewers say that the gold is wrong."""
        return sum(review.gold_wrong for review in self.reviews) * 2 > len(self.reviews)

    @property
    def tags(self) -> set[str]:
        """Every failure tag that was given."""
        return {review.tag for review in self.reviews if review.tag is not None}

    @property
    def cluster(self) -> str:
        """Shared by answers that are not independent."""
        return self.answer.cluster if self.answer else self.key.turn_id.rpartition("#")[0]

    def said(self, rater: str) -> bool | None:
        """Returns the verdict of `metric` or `judge`; None if there is none."""
        if self.answer is None:
            return None
        return self.answer.correct if rater == "metric" else self.answer.judged
