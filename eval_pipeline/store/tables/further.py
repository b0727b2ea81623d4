"""Tables of reviews (docs/reviews.md), of draws (how much of a suite a run has asked) and of gold that is suspect."""

from eval_pipeline.store.schemas import CASE_ID, QUESTION, TURN_ID, TURN_INDEX, Column, Table

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


SAMPLING_DESIGN = Table(
    "sampling_design",
    "One row a case that `run --until` may draw: in which batch it was drawn, with which probability. An evaluation "
    "that was run in full afterwards keeps its rows.",
    (
        CASE_ID,
        Column("place", "BIGINT", "Position of the case in the suite, from 0; never NULL."),
        Column("turns", "JSON", "Ids of its turns that count, a list; turns with an excluded gold do not; never NULL."),
        Column("batch", "BIGINT", "Batch in which it was drawn, from 1; NULL: not drawn."),
        Column(
            "probability",
            "DOUBLE",
            "Probability of being drawn in that batch, given those before, above 0 and at most 1; NULL: not drawn.",
        ),
        Column(
            "history",
            "JSON",
            "What earlier evaluations made of these turns, a text a turn, a character an evaluation: `1` right, `0` "
            "wrong, `-` unknown; never NULL.",
        ),
    ),
)

SAMPLED_ESTIMATES = Table(
    "sampled_estimates",
    "One row a look and figure of an evaluation whose cases were drawn: the estimate for the whole suite. The one with "
    "the highest `look` counts. Evaluations that were not drawn have no row.",
    (
        Column("look", "BIGINT", "Number of the look, one after each batch, from 1; never NULL."),
        Column("looks", "BIGINT", "Looks that the schedule has; the interval allows for all of them; never NULL."),
        Column(
            "metric",
            "VARCHAR",
            "`correct`, the share of right turns, or `difference`, that share less the baseline's; never NULL.",
        ),
        Column(
            "until",
            "VARCHAR",
            "The rule to stop by: `±2pp`, `decided-against NAME` (`within 30%`), `budget 5usd`, `ranked`; never NULL.",
        ),
        Column("baseline", "VARCHAR", "`<model version> <date>` that is compared with; NULL: none."),
        Column("turns", "BIGINT", "Turns asked so far, from 1; never NULL."),
        Column("cases", "BIGINT", "Cases asked so far, from 1; never NULL."),
        Column("suite_turns", "BIGINT", "Turns of the whole suite that count, from 1; never NULL."),
        Column("evaluations", "BIGINT", "Earlier evaluations that the choice goes by, from 0; never NULL."),
        Column(
            "value",
            "DOUBLE",
            "The figure for the whole suite, each answer weighted by its probability of being asked; never NULL.",
        ),
        Column("low", "DOUBLE", "Lower end of its 95% interval, for all looks together; never NULL."),
        Column("high", "DOUBLE", "Upper end; never NULL."),
        Column("effective", "DOUBLE", "Turns of a uniform draw that would tell as much, above 0; never NULL."),
        Column("naive", "DOUBLE", "The plain mean over the asked turns, which the draw biases; never NULL."),
        Column("naive_low", "DOUBLE", "Lower end of the interval of a uniform draw around it; NULL: one case only."),
        Column("naive_high", "DOUBLE", "Upper end; NULL: one case only."),
        Column("usd", "DOUBLE", "US dollars of the answers so far; NULL: no price known."),
        Column("verdict", "VARCHAR", "`better`, `worse` or `undecided` against the baseline; NULL: no baseline."),
        Column("stopped", "VARCHAR", "Why asking stopped here, a sentence; NULL: it went on, or was interrupted."),
    ),
)

DRAW_TABLES = (SAMPLING_DESIGN, SAMPLED_ESTIMATES)


_ACTION = "`corrected` (another gold), `both` (either gold is right) or `excluded` (counted in no figure)"

GOLD_OVERRIDES = Table(
    "gold_overrides",
    "One row per turn whose gold is overridden by the suite's `gold_overrides.yaml`, with who decided it and why.",
    (
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        Column("action", "VARCHAR", f"{_ACTION}; never NULL."),
        Column("who", "VARCHAR", "Who decided it; never NULL."),
        Column("why", "VARCHAR", "The reason given; never NULL."),
        Column(
            "published", "VARCHAR", "The right answer as the suite published it, as text; NULL: the track has none."
        ),
        Column("overridden", "VARCHAR", "The right answer of the override, as text; NULL: the turn is excluded."),
        Column("gold", "JSON", "The fields of the turn in the case file that the override replaces; NULL: excluded."),
        Column("source_line", "BIGINT", "Line in `gold_overrides.yaml`, from 1; never NULL."),
    ),
    key="suite",
)

SUITE_EDITIONS = Table(
    "suite_editions",
    "One row per suite: the edition of the data set, and of its gold, that the record holds.",
    (
        Column("data_edition", "VARCHAR", "Name of the data set's edition: `version` of `suite.yaml`; never NULL."),
        Column("data_hash", "VARCHAR", "Hash of everything that models are shown: questions and contexts; never NULL."),
        Column("published_edition", "VARCHAR", "Name of the gold without overrides; never NULL."),
        Column("published_hash", "VARCHAR", "Hash of the gold of every turn without overrides; never NULL."),
        Column("gold_edition", "VARCHAR", "Name of the gold that is used for scoring; never NULL."),
        Column(
            "gold_hash", "VARCHAR", "Hash of that gold; equal to `published_hash` if nothing is overridden; never NULL."
        ),
        Column("overridden_turns", "BIGINT", "Turns with an override, from 0; never NULL."),
        Column("overrides_hash", "VARCHAR", "Hash of the overrides; NULL: there are none."),
    ),
    key="suite",
)

GOLD_SUSPECTS = Table(
    "gold_suspects",
    "One row per turn and reason to doubt its gold: a list for people to check, best sorted by `turn_score`.",
    (
        TURN_ID,
        CASE_ID,
        TURN_INDEX,
        QUESTION,
        Column("expected", "VARCHAR", "The right answer that is used for scoring, as text; NULL: the track has none."),
        Column(
            "reason",
            "VARCHAR",
            "`contradiction` (the gold contradicts itself), `lint` (it has the form of a usual mistake), `agreement` "
            "(model versions agree with each other against it), `oracle` (the gold answer fails a strict metric) or "
            "`printing` (one row for all turns that differ only in percent or fraction); never NULL.",
        ),
        Column("evidence", "VARCHAR", "The reason to doubt the gold, as a sentence; never NULL."),
        Column("score", "DOUBLE", "Strength of this reason, 0..1, for sorting; never NULL."),
        Column("turn_score", "DOUBLE", "1 - product of (1 - score) over the turn's reasons, 0..1; never NULL."),
        Column("agreed_answer", "VARCHAR", "The answer that models agree on, as text; NULL: they do not agree."),
        Column("model_versions", "BIGINT", "Model versions with that answer, from 0; never NULL."),
        Column("for_gold", "BIGINT", "Model versions with the gold's answer; NULL: the reason is not about agreement."),
        Column("answered", "BIGINT", "Model versions with any answer; NULL: the reason is not about agreement."),
        Column(
            "simulated",
            "BOOLEAN",
            "true: only stand-ins agree, no real models; NULL: the reason is not about agreement.",
        ),
        Column("override", "VARCHAR", f"Decision about the turn: {_ACTION}; NULL: none yet."),
    ),
    key="suite",
)

GOLD_EDITIONS = Table(
    "gold_editions",
    "One row per edition of the gold and metric: the metric over all turns, scored with that edition.",
    (
        Column("edition", "VARCHAR", "`scored` (as in `statistics`) or `published` (without overrides); never NULL."),
        Column("name", "VARCHAR", "Name of the edition; never NULL."),
        Column("gold_hash", "VARCHAR", "Its hash; never NULL."),
        Column("data_edition", "VARCHAR", "Name of the data set's edition; never NULL."),
        Column("data_hash", "VARCHAR", "Its hash; never NULL."),
        Column("overridden_turns", "BIGINT", "Overridden turns among those asked, from 0; never NULL."),
        Column("excluded_turns", "BIGINT", "How many of these are excluded, from 0; never NULL."),
        Column("metric", "VARCHAR", "A metric, or `correct`; never NULL."),
        Column("n", "BIGINT", "Turns and samples with a value, from 0; never NULL."),
        Column("mean", "DOUBLE", "Mean, with failures of the metric counted as 0; NULL: no turn has a value."),
        Column(
            "se",
            "DOUBLE",
            "Its standard error, clustered by conversation; NULL: there is only one conversation, or none.",
        ),
        Column("low", "DOUBLE", "Lower end of its 95% interval; NULL: as `se`."),
        Column("high", "DOUBLE", "Upper end of its 95% interval; NULL: as `se`."),
    ),
)

GOLD_SUITE_TABLES = (GOLD_OVERRIDES, SUITE_EDITIONS, GOLD_SUSPECTS)
GOLD_TURN_TABLES = (GOLD_EDITIONS,)
