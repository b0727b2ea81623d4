"""Tables of figures over many turns (docs/statistics.md)."""

from eval_pipeline.store.schemas import Column, Table

_REASON = Column("reason", "VARCHAR", "Why figures of the row are NULL; NULL: no figure is missing for lack of data.")
_CLUSTERS = Column("clusters", "BIGINT", "Number of independent groups (conversations) among them, from 0; never NULL.")
_AXIS = Column("axis", "VARCHAR", "Kind of complexity, e.g. `turn_number` or `operations`; never NULL.")
_UNCERTAIN = "NULL: there is only one conversation, or no turn has a value"


def _interval(name: str, unit: str, missing: str) -> tuple[Column, Column, Column]:
    """Returns the columns of a figure and of its 95% interval."""
    return (
        Column(name, "DOUBLE", f"{unit}; NULL: {missing}."),
        Column(f"{name}_low", "DOUBLE", f"Lower end of the 95% interval of {name}; NULL: no interval, or {missing}."),
        Column(f"{name}_high", "DOUBLE", f"Upper end of the 95% interval of {name}; NULL: no interval, or {missing}."),
    )


STATISTICS = Table(
    "statistics",
    "One row per metric and group of turns: mean, standard error (clustered by conversation) and 95% interval. "
    "The headline accuracy is the row with metric `correct` and split `all`.",
    (
        Column("metric", "VARCHAR", "A metric, or a column of `turn_results` such as `correct`; never NULL."),
        Column("split", "VARCHAR", "By what the turns were split; `all` for all turns together; never NULL."),
        Column("split_value", "VARCHAR", "The group of the split, as text; `all` with split `all`; never NULL."),
        Column("n", "BIGINT", "Turns with a value (failures of the metric included), from 0; never NULL."),
        _CLUSTERS,
        Column(
            "mean", "DOUBLE", "Mean with failures of the metric counted as 0, in its unit; NULL: no turn has a value."
        ),
        Column("se", "DOUBLE", f"Standard error of the mean, clustered by conversation; {_UNCERTAIN}."),
        Column("low", "DOUBLE", f"Lower end of the 95% interval; {_UNCERTAIN}."),
        Column("high", "DOUBLE", f"Upper end of the 95% interval; {_UNCERTAIN}."),
        Column(
            "method",
            "VARCHAR",
            "How the interval was made: `wilson_clustered`, `t_clustered`, `adaptive` (the turns were drawn, see "
            "`sampled_estimates`) or `none`; never NULL.",
        ),
        Column("failures", "BIGINT", "Turns on which the metric itself failed, from 0; never NULL."),
        Column("mean_without_failures", "DOUBLE", "Mean over the other turns; NULL: there are none."),
        _REASON,
    ),
)

SUPERSEDED_STATISTICS = Table(
    "superseded_statistics",
    "Earlier rows of `statistics`, from before an evaluation was scored or asked again.",
    (
        Column("superseded_at", "TIMESTAMP", "When they were replaced, UTC; never NULL."),
        Column("scored_by", "VARCHAR", "Fingerprint of the code that scored the turns; never NULL."),
        Column(
            "responses",
            "VARCHAR",
            "Hash of the responses that were scored; equal if the same responses were scored again; never NULL.",
        ),
        Column(
            "gold_edition", "VARCHAR", "Name of the edition of the gold that was used for scoring; NULL: not recorded."
        ),
        Column("gold_hash", "VARCHAR", "Hash of that gold; NULL: not recorded."),
        *STATISTICS.columns,
    ),
)

COVERAGE = Table(
    "coverage",
    "One row per partition: how many turns reached each step, counting every sample. Each count is a part of the one "
    "before, except `scored`: turns without a readable answer are scored as wrong. Evaluations of 0.1.0 have no row.",
    (
        Column("planned", "BIGINT", "Turns in the scope of the run, from 0; NULL: no run is on record."),
        Column(
            "asked",
            "BIGINT",
            "Turns of these that the model was asked: without those that the budget did not allow, or that are "
            "missing in a file of recorded answers; never NULL.",
        ),
        Column(
            "answered",
            "BIGINT",
            "Turns of these with a response, including refusals and responses that were cut off; never NULL.",
        ),
        Column(
            "readable",
            "BIGINT",
            "Turns of these whose final attempt contains an answer that could be read; never NULL.",
        ),
        Column("scored", "BIGINT", "Turns with a verdict; the accuracy is over these; never NULL."),
        Column("cases", "BIGINT", "Cases with a scored turn, from 0; NULL: an evaluation of an older version."),
        Column(
            "cases_in_suite",
            "BIGINT",
            "Cases of the suite with those left out, an unreadable file counting as one; NULL: as for `cases`.",
        ),
        Column(
            "left_out",
            "JSON",
            "Why cases were left out: a list of objects with `cause`, `cases` and `examples`; the causes are `wrong`, "
            "`unreadable_file`, `wrong_gold` (see `left_out_cases`), `excluded` by an override of the gold, `part` "
            "(not in the scope of the run), `budget`, `unscored` (the gold does not hold), `undecided` (no verdict) "
            "and `not_asked`; NULL: none or unknown.",
        ),
        Column("left_out_because", "VARCHAR", "The same in words; NULL: none, or unknown."),
        Column(
            "unscored",
            "BIGINT",
            "Turns of the asked ones that cannot be scored, as their gold does not hold, from 0; NULL: unknown.",
        ),
        Column(
            "drifted",
            "BIGINT",
            "Scored turns whose gold gave another result than when the suite was read, from 0; NULL: unknown.",
        ),
        Column("drifted_cases", "VARCHAR", "Some of their cases; NULL: none, or unknown."),
        Column("unscored_because", "VARCHAR", "Some of these, by case and with the reason; NULL: none, or unknown."),
        Column(
            "implausible",
            "JSON",
            "Signs that the answers belong to other questions than the gold, or are in other units: a list of "
            "sentences; NULL: none, too few answers to tell, or answers of a stand-in, which are not checked.",
        ),
    ),
)

ACCURACY_BY_COMPLEXITY = Table(
    "accuracy_by_complexity",
    "One row per level of complexity: the share of correct turns.",
    (
        _AXIS,
        Column("level", "BIGINT", "Complexity of the turns, from 0; never NULL."),
        Column("n", "BIGINT", "Turns of that level, from 1; never NULL."),
        _CLUSTERS,
        Column("accuracy", "DOUBLE", "Share of correct turns, 0..1; NULL: no turn could be scored."),
        Column("se", "DOUBLE", f"Standard error, clustered by conversation; {_UNCERTAIN}."),
        Column("low", "DOUBLE", f"Lower end of the 95% interval; {_UNCERTAIN}."),
        Column("high", "DOUBLE", f"Upper end of the 95% interval; {_UNCERTAIN}."),
        Column(
            "fitted",
            "DOUBLE",
            "The fitted falling curve that the ceiling is read from, 0..1; levels of fewer than 20 turns are merged "
            "into the one below and share its value; NULL: fewer than three such levels, or older than this column.",
        ),
        _REASON,
    ),
)

COST_PER_CORRECT_ANSWER = Table(
    "cost_per_correct_answer",
    "One row per partition: the cost of all attempts, with recovery attempts, per correct answer.",
    (
        Column(
            "tokens_total",
            "BIGINT",
            "Input and output tokens of all attempts; NULL: the provider does not report them.",
        ),
        Column("usd_total", "DOUBLE", "US dollars of all attempts; NULL: no known price."),
        Column(
            "successful_conversations", "BIGINT", "Conversations in which every turn is correct, from 0; never NULL."
        ),
        Column("conversations", "BIGINT", "Conversations evaluated, from 0; never NULL."),
        *_interval("tokens_per_success", "Tokens per successful conversation", "no successful conversation"),
        *_interval("usd_per_success", "US dollars per successful conversation", "see `usd_reason`"),
        Column("correct_turns", "BIGINT", "Correct turns, from 0; never NULL."),
        Column("turns", "BIGINT", "Turns evaluated, from 0; never NULL."),
        *_interval("tokens_per_correct_turn", "Tokens per correct turn", "no correct turn"),
        *_interval("usd_per_correct_turn", "US dollars per correct turn", "see `usd_reason`"),
        Column("reason", "VARCHAR", "Why figures in tokens are NULL, with a reason for each; NULL: they are known."),
        Column(
            "usd_reason", "VARCHAR", "Why figures in dollars are NULL, with a reason for each; NULL: they are known."
        ),
    ),
)

COMPLEXITY_CEILING = Table(
    "complexity_ceiling",
    "One row per kind of complexity: up to which level the model's accuracy stays above a threshold.",
    (
        _AXIS,
        Column("threshold", "DOUBLE", "The threshold of accuracy, 0..1; never NULL."),
        Column(
            "ceiling",
            "DOUBLE",
            "Highest level at which the fitted falling curve of accuracy reaches the threshold; NULL: see `verdict`.",
        ),
        Column("ceiling_low", "DOUBLE", "Lower end of the 95% interval; NULL: none, or below the lowest level."),
        Column("ceiling_high", "DOUBLE", "Upper end of the 95% interval; NULL: none, or beyond the highest level."),
        Column(
            "slope",
            "DOUBLE",
            "Change of the log odds of a correct answer per level; NULL: no fit, or perfect separation.",
        ),
        Column("odds_ratio", "DOUBLE", "exp(slope), above 0: 1 means that complexity does not matter; NULL: as slope."),
        Column("p_value", "DOUBLE", "p-value of the hypothesis that the slope is 0, 0..1; NULL: as the slope."),
        Column("verdict", "VARCHAR", "What was found, in words; never NULL."),
        _REASON,
    ),
)

ERROR_ANALYSIS = Table(
    "error_analysis",
    "One row per group of turns that are not correct; the turns are grouped in several ways.",
    (
        Column(
            "grouping",
            "VARCHAR",
            "`error_class`, `failure_mode`, `complexity`, `recovered` or `message_shape`; never NULL.",
        ),
        Column("value", "VARCHAR", "The group, as text; NULL: the group of turns without a value."),
        Column("error_class", "VARCHAR", "Error class of the group; NULL: it has several, or its turns ran."),
        Column("turns", "BIGINT", "Turns in the group, from 1; never NULL."),
        Column("share", "DOUBLE", "Share of the group among all turns that this grouping covers, 0..1; never NULL."),
        Column("example_turn_id", "VARCHAR", "A turn of the group, the first by id; never NULL."),
        Column("example_message", "VARCHAR", "The error message of that turn; NULL: its answer ran."),
    ),
)

_NO_SCORE = "see `reason`, or it is the row of a level"

CALIBRATION = Table(
    "calibration",
    "Whether stated confidence says how often answers are right: a row `all` with the scores, and a row per level.",
    (
        Column(
            "level", "VARCHAR", "`all`, or the stated confidence: `high`, `medium` or `low`, if it occurs; never NULL."
        ),
        Column("nominal", "DOUBLE", "Accuracy that the level stands for, 0..1; NULL for `all`."),
        Column("n", "BIGINT", "Answers with a level, from 0; never NULL."),
        _CLUSTERS,
        Column("accuracy", "DOUBLE", "Share of these answers that are right, 0..1; NULL: there are none."),
        Column("se", "DOUBLE", f"Standard error of the accuracy, clustered; {_UNCERTAIN}."),
        Column("low", "DOUBLE", f"Lower end of the 95% interval of the accuracy; {_UNCERTAIN}."),
        Column("high", "DOUBLE", f"Upper end of the 95% interval of the accuracy; {_UNCERTAIN}."),
        Column(
            "reliability",
            "DOUBLE",
            f"1 - mean distance between a level's accuracy and `nominal`, 0..1; NULL: {_NO_SCORE}.",
        ),
        Column(
            "resolution",
            "DOUBLE",
            f"Rise of the accuracy from level to level, divided by the rise of `nominal`, 0..1; NULL: {_NO_SCORE}.",
        ),
        Column("calibration_score", "DOUBLE", f"Reliability times resolution, 0..1; NULL: {_NO_SCORE}."),
        Column("ece", "DOUBLE", f"Expected calibration error, 0..1: 1 - reliability; NULL: {_NO_SCORE}."),
        Column(
            "brier",
            "DOUBLE",
            "Brier score of `nominal` as a forecast, 0..1, 0 is best; NULL: no answers, or the row of a level.",
        ),
        Column(
            "brier_reliability",
            "DOUBLE",
            "Part of `brier` that better calibration would remove, 0..1; NULL: as `brier`.",
        ),
        Column(
            "brier_resolution",
            "DOUBLE",
            "Reduction of `brier` because levels differ in accuracy, 0..0.25; NULL: as `brier`.",
        ),
        Column(
            "brier_uncertainty",
            "DOUBLE",
            "Part of `brier` that is due to the difficulty of the questions, 0..0.25; NULL: as `brier`.",
        ),
        Column("verdict", "VARCHAR", "What the calibration score means, in words; NULL: as the score."),
        Column(
            "warning",
            "VARCHAR",
            "Says that high confidence is not reliable; NULL: it is, or the model never stated it.",
        ),
        Column(
            "mapping_version", "VARCHAR", "Version of the mapping from levels to `nominal`; NULL in rows of a level."
        ),
        _REASON,
    ),
)

_NO_SAME, _NO_OTHER = "no pair is the same, or an older row", "no pair differs, or an older row"
_BOTH = "pairs, from 0; never NULL"
JUDGE_AGREEMENT = Table(
    "judge_agreement",
    "One row per partition: how far the LLM judge agrees with the evidence on turns for which both give a verdict.",
    (
        Column("n", "BIGINT", "Pairs that the judge was asked about and the evidence decided, from 0; never NULL."),
        _CLUSTERS,
        Column("judge_same_evidence_same", "BIGINT", f"Judge 1, evidence equivalent or agreed: {_BOTH}."),
        Column("judge_same_evidence_different", "BIGINT", f"Judge 1, evidence different: {_BOTH}."),
        Column("judge_partly_evidence_same", "BIGINT", f"Judge 0.5, evidence equivalent or agreed: {_BOTH}."),
        Column("judge_partly_evidence_different", "BIGINT", f"Judge 0.5, evidence different: {_BOTH}."),
        Column("judge_different_evidence_same", "BIGINT", f"Judge 0, evidence equivalent or agreed: {_BOTH}."),
        Column("judge_different_evidence_different", "BIGINT", f"Judge 0, evidence different: {_BOTH}."),
        *_interval(
            "agreement", "Share of pairs on which both agree, `partly` counted as different, 0..1", "no such pairs"
        ),
        *_interval("true_positive_rate", "Share of the equivalent pairs that the judge calls the same, 0..1", _NO_SAME),
        *_interval(
            "true_negative_rate", "Share of the different pairs that the judge does not call the same, 0..1", _NO_OTHER
        ),
        *_interval("base_rate", "Share of the pairs that are equivalent by the evidence, 0..1", "no such pairs"),
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


LABEL_CONFUSION = Table(
    "label_confusion",
    "One row per pair of expected and given label that occurs, in the order of the labels; empty without labels.",
    (
        Column("expected_label", "VARCHAR", "The right label; never NULL."),
        Column("answer_label", "VARCHAR", "The label that was given; NULL: none could be read."),
        Column("turns", "BIGINT", "Turns with this pair, from 1; never NULL."),
        Column("share", "DOUBLE", "Of the turns that expect the label, 0..1; never NULL."),
        Column("example_turn_id", "VARCHAR", "One of these turns; never NULL."),
    ),
)

LABEL_SCORES = Table(
    "label_scores",
    "One row per label, and a row `macro` for the mean: precision, recall and F1; empty without labels.",
    (
        Column(
            "label", "VARCHAR", "The label; `macro` with scope `all` for the mean over expected labels; never NULL."
        ),
        Column("scope", "VARCHAR", "`all` for macro F1, else `label`; never NULL."),
        Column("n", "BIGINT", "Turns that expect the label; all turns for macro F1; never NULL."),
        Column("given", "BIGINT", "Turns that give the label; any label for macro F1; never NULL."),
        Column(
            "precision",
            "DOUBLE",
            "Share of `given` that are right, 0..1; NULL: the label was never given, or macro F1.",
        ),
        Column(
            "recall", "DOUBLE", "Share of `n` that are right, 0..1; NULL: the label is never expected, or macro F1."
        ),
        Column("f1", "DOUBLE", "F1, or the mean F1 over expected labels, 0..1; NULL: `reason` says why."),
        Column("low", "DOUBLE", "Lower end of its 95% interval, by the jackknife over clusters; NULL: see `reason`."),
        Column("high", "DOUBLE", "Upper end of the same interval; NULL: see `reason`."),
        Column("reason", "VARCHAR", "Why numbers are missing; NULL: none are missing."),
    ),
)

ACCURACY_BY_CONTRACT = Table(
    "accuracy_by_contract",
    "One row per contract: the accuracy if answers were compared under it, from the metrics `relaxations` and "
    "`insisted`; empty without scored turns, and where turns were drawn.",
    (
        Column("contract", "VARCHAR", "Name of a preset such as `expert`; never NULL."),
        Column("overlooks", "VARCHAR", "What it overlooks, unless a question insists on it, by name; never NULL."),
        Column("turns", "BIGINT", "Turns with a verdict, from 1; never NULL."),
        Column(
            "correct",
            "BIGINT",
            "Turns that are right under it; where no SQL is expected, as in `correct` of the turn; never NULL.",
        ),
        Column("accuracy", "DOUBLE", "Share of these, 0..1; never NULL."),
        Column("low", "DOUBLE", f"Lower end of the 95% interval; {_UNCERTAIN}."),
        Column("high", "DOUBLE", f"Upper end of the 95% interval; {_UNCERTAIN}."),
        Column(
            "owed_to",
            "JSON",
            "Of what it overlooks, how many turns are right only because it overlooks that: an object of numbers of "
            "turns; an empty object for none.",
        ),
    ),
)

AGGREGATE_TABLES = tuple(value for value in tuple(vars().values()) if isinstance(value, Table))
"""Every table declared above."""
