"""What the store keeps of reviews: what people say of answers, and the figures that follow (docs/reviews.md)."""

from eval_pipeline.store.schemas import Column, Table
from eval_pipeline.store.tables.columns import CASE_ID, TURN_ID, TURN_INDEX

REVIEWS = Table(
    "reviews",
    "One row a review: what a person says of one answer. `is_current` marks those that count.",
    (
        Column("review_id", "VARCHAR", "Id of the review; unique, never NULL."),
        Column("said_at", "TIMESTAMP", "When, UTC; never NULL."),
        Column("who", "VARCHAR", "The reviewer; never NULL."),
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        Column("model_version", "VARCHAR", "Whose answer it is; never NULL."),
        Column("eval_date", "DATE", "Evaluation in which it was seen; never NULL."),
        Column("sample", "BIGINT", "Which of its samples, from 0; never NULL."),
        Column("response_hash", "VARCHAR", "Of the response seen: SHA-256, 32 hexadecimal digits; never NULL."),
        Column("gold_hash", "VARCHAR", "Hash of the gold that was seen; NULL: not told."),
        Column("verdict", "VARCHAR", "`right`, `wrong` or `cannot_tell`, whatever the gold says; never NULL."),
        Column("gold_wrong", "BOOLEAN", "true: the gold of the turn is wrong; never NULL."),
        Column("correction", "JSON", "Fields of the turn in the case file that would be right; NULL: not told."),
        Column("tag", "VARCHAR", "How the answer fails, in the reviewers' own list of words; NULL: not told."),
        Column("note", "VARCHAR", "What else was said; empty for none."),
        Column("queue", "VARCHAR", "Id of the queue that asked for it; NULL: somebody came by."),
        Column("probability", "DOUBLE", "That the queue drew the answer with, 0..1; NULL: no queue."),
        Column("supersedes", "VARCHAR", "Id of the review that it was to replace; NULL: none."),
        Column("is_current", "BOOLEAN", "true: it counts; false: the person has said otherwise since; never NULL."),
        Column(
            "seen_response",
            "BOOLEAN",
            "true: the record's response of that evaluation is the one seen; false: another one, or none; never NULL.",
        ),
        Column(
            "metric_correct", "BOOLEAN", "`correct` of that answer; NULL: not scored, or `seen_response` is not true."
        ),
        Column("judge_correct", "BOOLEAN", "The LLM judge calls it the same as the gold; NULL: it was not asked."),
        Column("simulated", "BOOLEAN", "true: a stand-in's answer, no real model's; NULL: it is not on record."),
    ),
    key="suite",
)

REVIEW_STATISTICS = Table(
    "review_statistics",
    "One row a figure that follows from reviews, of a queue's whole population or of what was looked at.",
    (
        Column(
            "queue",
            "VARCHAR",
            "Queue whose draw the figure is estimated from, for all answers that it was drawn from; NULL: over the "
            "answers that people looked at, which nobody drew.",
        ),
        Column("model_version", "VARCHAR", "Of whose answers; NULL: of all together."),
        Column(
            "figure",
            "VARCHAR",
            "`accuracy` (people call right, of what they can tell), `cannot_tell`, `gold_wrong`, `failure_tag`; of the "
            "primary metric and the judge against people `metric_…` and `judge_…`: `accuracy`, `true_positive_rate`, "
            "`true_negative_rate`, `kappa`; of two people `reviewers_agreement`, `reviewers_kappa`; never NULL.",
        ),
        Column("label", "VARCHAR", "The failure tag, or the two people; NULL: other figures."),
        Column("n", "BIGINT", "Reviewed answers that it is about, from 0; never NULL."),
        Column("population", "DOUBLE", "Answers that these stand for, estimated; NULL: no queue, or too few reviewed."),
        Column("value", "DOUBLE", "The figure: a share 0..1, or kappa -1..1; NULL: see `reason`."),
        Column("se", "DOUBLE", "Its standard error: by the draw, or clustered by conversation; NULL: see `reason`."),
        Column("low", "DOUBLE", "Lower end of its 95% interval; NULL: see `reason`."),
        Column("high", "DOUBLE", "Upper end of its 95% interval; NULL: see `reason`."),
        Column("reason", "VARCHAR", "Why numbers are missing; NULL: all are there."),
    ),
    key="suite",
)

REVIEW_TABLES = (REVIEWS, REVIEW_STATISTICS)
