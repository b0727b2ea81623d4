"""Tables of reviews: people's judgements of answers, and the figures computed from them (docs/reviews.md)."""

from eval_pipeline.store.schemas import Column, Table
from eval_pipeline.store.tables.columns import CASE_ID, TURN_ID, TURN_INDEX

REVIEWS = Table(
    "reviews",
    "One row per review: a person's verdict on one answer. `is_current` marks the reviews that count.",
    (
        Column("review_id", "VARCHAR", "Id of the review; unique, never NULL."),
        Column("said_at", "TIMESTAMP", "Time, UTC; never NULL."),
        Column("who", "VARCHAR", "The reviewer; never NULL."),
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        Column("model_version", "VARCHAR", "The model version that gave the answer; never NULL."),
        Column("eval_date", "DATE", "Date of the evaluation in which the reviewer saw it; never NULL."),
        Column("sample", "BIGINT", "Number of the sample, from 0; never NULL."),
        Column(
            "response_hash",
            "VARCHAR",
            "Hash of the response that the reviewer saw: SHA-256, 32 hexadecimal digits; never NULL.",
        ),
        Column("gold_hash", "VARCHAR", "Hash of the gold that the reviewer saw; NULL: not recorded."),
        Column("verdict", "VARCHAR", "`right`, `wrong` or `cannot_tell`, independent of the gold; never NULL."),
        Column("gold_wrong", "BOOLEAN", "true: the gold of the turn is wrong; never NULL."),
        Column("correction", "JSON", "The right fields of the turn in the case file; NULL: none given."),
        Column("tag", "VARCHAR", "Kind of failure, from the reviewers' own list; NULL: none given."),
        Column("note", "VARCHAR", "Further remarks; empty for none."),
        Column("queue", "VARCHAR", "Id of the queue that asked for it; NULL: reviewed without a queue."),
        Column("probability", "DOUBLE", "Probability with which the queue drew the answer, 0..1; NULL: no queue."),
        Column("supersedes", "VARCHAR", "Id of the review that this one replaces; NULL: none."),
        Column("is_current", "BOOLEAN", "true: it counts; false: the person has replaced it since; never NULL."),
        Column(
            "seen_response",
            "BOOLEAN",
            "true: the record still has the response that was seen; false: it has another one, or none; never NULL.",
        ),
        Column(
            "metric_correct", "BOOLEAN", "`correct` of that answer; NULL: not scored, or `seen_response` is not true."
        ),
        Column(
            "judge_correct", "BOOLEAN", "true: the LLM judge calls the answer right; NULL: the judge was not asked."
        ),
        Column(
            "simulated", "BOOLEAN", "true: the answer is from a stand-in, no real model; NULL: it is not on record."
        ),
    ),
    key="suite",
)

REVIEW_STATISTICS = Table(
    "review_statistics",
    "One row per figure computed from reviews: of all answers that a queue drew from, or of the reviewed ones only.",
    (
        Column(
            "queue",
            "VARCHAR",
            "Queue from whose sample the figure is estimated, for all answers that the queue drew from; NULL: the "
            "figure is over all reviewed answers, without any estimation.",
        ),
        Column(
            "model_version", "VARCHAR", "Model version whose answers the figure is about; NULL: all model versions."
        ),
        Column(
            "figure",
            "VARCHAR",
            "`accuracy` (share of right answers among those that people could judge), `cannot_tell`, `gold_wrong`, "
            "`failure_tag`; of the primary metric (`metric_…`) and the judge (`judge_…`), compared with people: "
            "`accuracy`, `true_positive_rate`, `true_negative_rate`, `kappa`; of queues also `corrected_accuracy` (as "
            "`accuracy`, estimated from the verdicts on all answers, corrected by the reviews) and `bias` (share that "
            "they call right, less the share that people do); of two people: `reviewers_agreement`, "
            "`reviewers_kappa`; never NULL.",
        ),
        Column(
            "label",
            "VARCHAR",
            "The failure tag, of a bias the tag of the cases, or the names of the two people; NULL: other figures.",
        ),
        Column("n", "BIGINT", "Number of reviewed answers behind the figure, from 0; never NULL."),
        Column(
            "population",
            "DOUBLE",
            "Estimated number of answers that they represent; NULL: no queue, or too few are reviewed.",
        ),
        Column(
            "value",
            "DOUBLE",
            "The figure: a share 0..1, or kappa or a bias -1..1; NULL: see `reason`, e.g. fewer than 12 reviews.",
        ),
        Column(
            "se", "DOUBLE", "Its standard error, from the sampling or clustered by conversation; NULL: see `reason`."
        ),
        Column("low", "DOUBLE", "Lower end of its 95% interval; NULL: see `reason`."),
        Column("high", "DOUBLE", "Upper end of its 95% interval; NULL: see `reason`."),
        Column("reason", "VARCHAR", "Why numbers are missing; NULL: none are missing."),
    ),
    key="suite",
)

REVIEW_TABLES = (REVIEWS, REVIEW_STATISTICS)
