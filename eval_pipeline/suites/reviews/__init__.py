"""People's reviews of answers, stored beside the suite in files meant to be committed (docs/reviews.md)."""

from eval_pipeline.suites.reviews.files import ReviewFiles, add_review, read_reviews
from eval_pipeline.suites.reviews.queues import Queue, QueueItem, Stratum, read_queues, write_queue
from eval_pipeline.suites.reviews.review import CANNOT_TELL, RIGHT, VERDICTS, WRONG, AnswerKey, Review

__all__ = [
    "CANNOT_TELL",
    "RIGHT",
    "VERDICTS",
    "WRONG",
    "AnswerKey",
    "Queue",
    "QueueItem",
    "Review",
    "ReviewFiles",
    "Stratum",
    "add_review",
    "read_queues",
    "read_reviews",
    "write_queue",
]
