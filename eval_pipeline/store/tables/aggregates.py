"""What the store keeps of figures over many turns (docs/statistics.md)."""

from eval_pipeline.store.schemas import Column, Table

_REASON = Column("reason", "VARCHAR", "Why figures of the row are NULL; NULL: none is for want of data.")
_CLUSTERS = Column("clusters", "BIGINT", "Independent groups among them (conversations), from 0; never NULL.")
_AXIS = Column("axis", "VARCHAR", "Which complexity, e.g. `turn_number` or `operations`; never NULL.")
_UNCERTAIN = "NULL: one conversation only, or no turn has a value"


def _interval(name: str, unit: str, missing: str) -> tuple[Column, Column, Column]:
    """A figure and its 95% interval."""
    return (
        Column(name, "DOUBLE", f"{unit}; NULL: {missing}."),
        Column(f"{name}_low", "DOUBLE", f"Lower end of the 95% interval of {name}; NULL: no interval, or {missing}."),
        Column(f"{name}_high", "DOUBLE", f"Upper end of the 95% interval of {name}; NULL: no interval, or {missing}."),
    )


STATISTICS = Table(
    "statistics",
    "One row a metric and group of turns: mean, error clustered by conversation, 95% interval. "
    "The headline accuracy is the row with metric `correct` and split `all`.",
    (
        Column("metric", "VARCHAR", "A metric, or a column of `turn_results` such as `correct`; never NULL."),
        Column("split", "VARCHAR", "What the turns were split by; `all` for all turns together; never NULL."),
        Column("split_value", "VARCHAR", "Which group of the split, as text; `all` with split `all`; never NULL."),
        Column("n", "BIGINT", "Turns with a value (failures of the metric included), from 0; never NULL."),
        _CLUSTERS,
        Column(
            "mean", "DOUBLE", "Mean with failures of the metric counted as 0, in its unit; NULL: no turn has a value."
        ),
        Column("se", "DOUBLE", f"Standard error of the mean, clustered by conversation; {_UNCERTAIN}."),
        Column("low", "DOUBLE", f"Lower end of the 95% interval; {_UNCERTAIN}."),
        Column("high", "DOUBLE", f"Upper end of the 95% interval; {_UNCERTAIN}."),
        Column(
            "method", "VARCHAR", "How the interval was made: `wilson_clustered`, `t_clustered` or `none`; never NULL."
        ),
        Column("failures", "BIGINT", "Turns on which the metric itself failed, from 0; never NULL."),
        Column("mean_without_failures", "DOUBLE", "Mean over the other turns; NULL: there are none."),
        _REASON,
    ),
)

SUPERSEDED_STATISTICS = Table(
    "superseded_statistics",
    "Rows that `statistics` had before an evaluation was scored or asked again.",
    (
        Column("superseded_at", "TIMESTAMP", "When they were replaced, UTC; never NULL."),
        Column("scored_by", "VARCHAR", "Fingerprint of the code that scored the turns; never NULL."),
        Column("responses", "VARCHAR", "Hash of the responses that were scored: equal ones, scored again; never NULL."),
        Column("gold_edition", "VARCHAR", "Name of the edition of the gold that was scored by; NULL: not noted."),
        Column("gold_hash", "VARCHAR", "Hash of that gold; NULL: not noted."),
        *STATISTICS.columns,
    ),
)

COVERAGE = Table(
    "coverage",
    "One row a partition: how many turns got how far, every sample counted. Each count is among the one before, but "
    "for `scored`: turns without a readable answer are scored as wrong. Evaluations of 0.1.0 have no row.",
    (
        Column("planned", "BIGINT", "Turns in the scope of the run, from 0; NULL: no run is on record."),
        Column(
            "asked",
            "BIGINT",
            "Of these, put to the model: not those that the budget left out, or that a file of "
            "recorded answers lacks; never NULL.",
        ),
        Column("answered", "BIGINT", "Of these, with a response, a refusal or a cut off one too; never NULL."),
        Column(
            "readable",
            "BIGINT",
            "Of these, with an answer that could be read from the attempt that counts; never NULL.",
        ),
        Column("scored", "BIGINT", "Turns with a verdict, which the accuracy counts; never NULL."),
    ),
)

ACCURACY_BY_COMPLEXITY = Table(
    "accuracy_by_complexity",
    "One row a level of complexity: the share of correct turns.",
    (
        _AXIS,
        Column("level", "BIGINT", "Complexity of the turns, from 0; never NULL."),
        Column("n", "BIGINT", "Turns of that level, from 1; never NULL."),
        _CLUSTERS,
        Column("accuracy", "DOUBLE", "Share of correct turns, 0..1; NULL: none could be scored."),
        Column("se", "DOUBLE", f"Standard error, clustered by conversation; {_UNCERTAIN}."),
        Column("low", "DOUBLE", f"Lower end of the 95% interval; {_UNCERTAIN}."),
        Column("high", "DOUBLE", f"Upper end of the 95% interval; {_UNCERTAIN}."),
        _REASON,
    ),
)

COST_PER_CORRECT_ANSWER = Table(
    "cost_per_correct_answer",
    "One row a partition: everything spent, recovery attempts included, over what came out right.",
    (
        Column("tokens_total", "BIGINT", "Input and output tokens of all attempts; NULL: not told by the provider."),
        Column("usd_total", "DOUBLE", "US dollars of all attempts; NULL: no price known."),
        Column("successful_conversations", "BIGINT", "Conversations whose every turn is correct, from 0; never NULL."),
        Column("conversations", "BIGINT", "Conversations evaluated, from 0; never NULL."),
        *_interval("tokens_per_success", "Tokens a successful conversation", "no successful conversation"),
        *_interval("usd_per_success", "US dollars a successful conversation", "see `usd_reason`"),
        Column("correct_turns", "BIGINT", "Correct turns, from 0; never NULL."),
        Column("turns", "BIGINT", "Turns evaluated, from 0; never NULL."),
        *_interval("tokens_per_correct_turn", "Tokens a correct turn", "no correct turn"),
        *_interval("usd_per_correct_turn", "US dollars a correct turn", "see `usd_reason`"),
        Column("reason", "VARCHAR", "Why figures in tokens are NULL, a reason each; NULL: they are known."),
        Column("usd_reason", "VARCHAR", "Why figures in dollars are NULL, a reason each; NULL: they are known."),
    ),
)

COMPLEXITY_CEILING = Table(
    "complexity_ceiling",
    "One row an axis: up to which complexity the model stays above a threshold of accuracy.",
    (
        _AXIS,
        Column("threshold", "DOUBLE", "Accuracy that counts as being able, 0..1; never NULL."),
        Column("ceiling", "DOUBLE", "Highest complexity at which the monotone curve reaches it; NULL: see `verdict`."),
        Column("ceiling_low", "DOUBLE", "Lower end of the 95% interval; NULL: none, or below the lowest level."),
        Column("ceiling_high", "DOUBLE", "Upper end of the 95% interval; NULL: none, or beyond the highest level."),
        Column("slope", "DOUBLE", "Change of the log odds of being correct a step; NULL: no fit, or separated."),
        Column("odds_ratio", "DOUBLE", "exp(slope), above 0: 1 means that complexity does not matter; NULL: as slope."),
        Column("p_value", "DOUBLE", "Of the slope being 0, 0..1; NULL: as the slope."),
        Column("verdict", "VARCHAR", "What was found, in words; never NULL."),
        _REASON,
    ),
)

ERROR_ANALYSIS = Table(
    "error_analysis",
    "One row a group of turns that are not correct, grouped in several ways.",
    (
        Column(
            "grouping",
            "VARCHAR",
            "`error_class`, `failure_mode`, `complexity`, `recovered` or `message_shape`; never NULL.",
        ),
        Column("value", "VARCHAR", "Which group, as text; NULL: turns without a value."),
        Column("error_class", "VARCHAR", "Error class of the group; NULL: several, or turns that ran."),
        Column("turns", "BIGINT", "Turns in the group, from 1; never NULL."),
        Column("share", "DOUBLE", "Of all turns that this grouping covers, 0..1; never NULL."),
        Column("example_turn_id", "VARCHAR", "A turn of the group, the first by id; never NULL."),
        Column("example_message", "VARCHAR", "Its error message; NULL: it ran."),
    ),
)

_NO_SCORE = "see `reason`, or a row of a level"

CALIBRATION = Table(
    "calibration",
    "Whether the words for confidence say how often answers are right: a row `all` with the scores, then one a level.",
    (
        Column("level", "VARCHAR", "`all`, `high`, `medium` or `low`, of those that occur; never NULL."),
        Column("nominal", "DOUBLE", "Accuracy that the level promises, 0..1; NULL for `all`."),
        Column("n", "BIGINT", "Answers with a level, from 0; never NULL."),
        _CLUSTERS,
        Column("accuracy", "DOUBLE", "Share of them that is right, 0..1; NULL: there are none."),
        Column("se", "DOUBLE", f"Standard error of the accuracy, clustered; {_UNCERTAIN}."),
        Column("low", "DOUBLE", f"Lower end of the 95% interval of the accuracy; {_UNCERTAIN}."),
        Column("high", "DOUBLE", f"Upper end of the 95% interval of the accuracy; {_UNCERTAIN}."),
        Column("reliability", "DOUBLE", f"1 - mean distance of accuracy and promise, 0..1; NULL: {_NO_SCORE}."),
        Column("resolution", "DOUBLE", f"Rise of accuracy by level over the promised, 0..1; NULL: {_NO_SCORE}."),
        Column("calibration_score", "DOUBLE", f"Reliability times resolution, 0..1; NULL: {_NO_SCORE}."),
        Column("ece", "DOUBLE", f"Expected calibration error, 0..1: 1 - reliability; NULL: {_NO_SCORE}."),
        Column("brier", "DOUBLE", "Brier score of the promises, 0..1, 0 is best; NULL: no answers, or a level's row."),
        Column("brier_reliability", "DOUBLE", "Its part that calibration could save, 0..1; NULL as brier."),
        Column("brier_resolution", "DOUBLE", "Its part that telling answers apart earns, 0..0.25; NULL as brier."),
        Column("brier_uncertainty", "DOUBLE", "Its part that the questions bring, 0..0.25; NULL as brier."),
        Column("verdict", "VARCHAR", "What the score means, in words; NULL as the score."),
        Column("warning", "VARCHAR", "That high confidence is not reliable; NULL: it is, or nobody claimed it."),
        Column("mapping_version", "VARCHAR", "Version of the levels' promises; NULL in rows of a level."),
        _REASON,
    ),
)

_NO_SAME, _NO_OTHER = "no pair is the same, or an older row", "no pair differs, or an older row"
_BOTH = "pairs, from 0; never NULL"
JUDGE_AGREEMENT = Table(
    "judge_agreement",
    "One row a partition: how far the LLM judge agrees with the evidence, where both have spoken.",
    (
        Column("n", "BIGINT", "Pairs that the judge was asked about and the evidence decided, from 0; never NULL."),
        _CLUSTERS,
        Column("judge_same_evidence_same", "BIGINT", f"Judge 1, evidence equivalent or agreed: {_BOTH}."),
        Column("judge_same_evidence_different", "BIGINT", f"Judge 1, evidence different: {_BOTH}."),
        Column("judge_partly_evidence_same", "BIGINT", f"Judge 0.5, evidence equivalent or agreed: {_BOTH}."),
        Column("judge_partly_evidence_different", "BIGINT", f"Judge 0.5, evidence different: {_BOTH}."),
        Column("judge_different_evidence_same", "BIGINT", f"Judge 0, evidence equivalent or agreed: {_BOTH}."),
        Column("judge_different_evidence_different", "BIGINT", f"Judge 0, evidence different: {_BOTH}."),
        *_interval("agreement", "Share of pairs with one opinion, partly counted as different, 0..1", "no such pairs"),
        *_interval("true_positive_rate", "Of pairs that are the same, the share the judge calls so, 0..1", _NO_SAME),
        *_interval("true_negative_rate", "Of pairs that differ, the share the judge does not call same", _NO_OTHER),
        *_interval("base_rate", "Share of these pairs that are the same by the evidence, 0..1", "no such pairs"),
        *_interval("kappa", "Cohen's kappa of same against not the same, at most 1", "see `reason`"),
        Column("kappa_se", "DOUBLE", "Its standard error, jackknife over conversations; NULL: see `reason`."),
        Column("judged", "BIGINT", "Pairs that a judge was asked about, its cache included, from 0; never NULL."),
        Column("judge_calls", "BIGINT", "Of these, calls of a model, from 0; never NULL."),
        Column("judge_tokens", "BIGINT", "Tokens of these calls, in and out, apart from the model's; never NULL."),
        Column("judge_usd", "DOUBLE", "US dollars of these calls; NULL: a call has no known price."),
        Column("judge_failures", "BIGINT", "Of these, calls without a judgement, from 0; never NULL."),
        Column("calls_saved", "BIGINT", "Pairs that the evidence decided and nobody was asked about; never NULL."),
        Column("calls_avoidable", "BIGINT", "Pairs that the evidence decided and the judge saw too; never NULL."),
        _REASON,
    ),
)

AGGREGATE_TABLES = tuple(value for value in tuple(vars().values()) if isinstance(value, Table))
"""Every table declared above."""
