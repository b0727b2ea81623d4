"""Tables that compare evaluations: between model versions and over time (docs/statistics.md)."""

from eval_pipeline.store.schemas import Column, Table

_NO_TEST = "NULL: see `reason`"
_NO_LOSS = "NULL: no loss is open"


def _paired_mean(name: str, unit: str) -> tuple[Column, ...]:
    """Returns the columns of a cost of both models on their common turns, and of its paired difference."""
    unknown = "NULL: unknown for some common turn"
    return (
        Column(f"{name}_a", "DOUBLE", f"{unit} per common turn, of model_a; {unknown}."),
        Column(f"{name}_b", "DOUBLE", f"{unit} per common turn, of model_b; {unknown}."),
        Column(f"{name}_difference", "DOUBLE", f"{name}_b - {name}_a; {unknown} of either model."),
        Column(
            f"{name}_difference_low",
            "DOUBLE",
            f"Lower end of its 95% interval; {unknown}, or there is only one conversation.",
        ),
        Column(
            f"{name}_difference_high",
            "DOUBLE",
            f"Upper end of its 95% interval; {unknown}, or there is only one conversation.",
        ),
    )


_REACHED = {
    "planned": "Turns and samples that the run of {} planned",
    "asked": "Turns of these that the model was asked",
    "answered": "Turns of these with a response",
    "readable": "Turns of these with an answer that could be read",
    "scored": "Turns and samples with a verdict; the accuracy of {} is over these",
}


def _coverage(side: str) -> tuple[Column, ...]:
    """Returns one side's coverage columns, as in the table `coverage`."""
    of = f"model_{side}"
    return tuple(
        Column(f"{name}_{side}", "BIGINT", f"{text.format(of)}, from 0; NULL: not on record (made by 0.1.0).")
        for name, text in _REACHED.items()
    )


_NO_CONSERVATIVE = "NULL: there is no test, or the two cannot be compared"
_CONSERVATIVE = (
    Column("unanswered_a", "BIGINT", "Turns of `conservative_n` that model_a did not answer, from 0; never NULL."),
    Column("unanswered_b", "BIGINT", "Turns of `conservative_n` that model_b did not answer, from 0; never NULL."),
    Column("conservative_n", "BIGINT", "Turns and samples scored for both, answered or not, from 0; never NULL."),
    Column(
        "conservative_accuracy_a",
        "DOUBLE",
        "Share that model_a got right, with unanswered turns as wrong; NULL: no turns.",
    ),
    Column(
        "conservative_accuracy_b",
        "DOUBLE",
        "Share that model_b got right, with unanswered turns as wrong; NULL: no turns.",
    ),
    Column(
        "conservative_difference", "DOUBLE", f"conservative_accuracy_b - conservative_accuracy_a; {_NO_CONSERVATIVE}."
    ),
    Column("conservative_low", "DOUBLE", f"Lower end of its 95% interval, not corrected; {_NO_CONSERVATIVE}."),
    Column("conservative_high", "DOUBLE", f"Upper end of its 95% interval, not corrected; {_NO_CONSERVATIVE}."),
    Column("conservative_p_value", "DOUBLE", f"As `p_value`, of this difference; {_NO_CONSERVATIVE}."),
    Column("conservative_p_exact", "DOUBLE", f"As `p_exact`, of this difference; {_NO_CONSERVATIVE}."),
    Column("conservative_method", "VARCHAR", "As `method`, of conservative_p_value; never NULL."),
    Column(
        "conservative_broken", "BIGINT", "Turns that only model_a got right, including unanswered ones; never NULL."
    ),
    Column("conservative_fixed", "BIGINT", "Turns that only model_b got right, including unanswered ones; never NULL."),
    Column(
        "conservative_verdict",
        "VARCHAR",
        "Verdict of this figure alone, corrected by Holm; the option `--baseline` uses it; " + _NO_CONSERVATIVE + ".",
    ),
)


def _front(side: str) -> tuple[Column, Column]:
    """Returns the columns for a model version's position on the Pareto front of cost and accuracy."""
    return (
        Column(
            f"pareto_cost_{side}",
            "VARCHAR",
            f"Cost per turn by which model_{side} is compared with others: `usd` if known for all of them, else "
            "`tokens`; NULL: neither is known.",
        ),
        Column(
            f"on_front_{side}",
            "BOOLEAN",
            f"true: no other latest evaluation of the suite is at least as cheap and as accurate as that of "
            f"model_{side}, and better in one of the two; stand-ins are compared with stand-ins only; NULL: no "
            f"pareto_cost_{side}.",
        ),
    )


MODEL_COMPARISONS = Table(
    "model_comparisons",
    "One row per pair of model versions of a suite, each with its latest evaluation (as in `latest_partitions`). "
    "Figures are over the turns and samples that both answered and that are scored for both; `conservative_…` are over "
    "all that are scored for both, with unanswered ones as wrong. model_a is the first by name.",
    (
        Column("model_a", "VARCHAR", "A model version; never NULL."),
        Column("model_b", "VARCHAR", "The model version that it is compared with; never NULL."),
        Column("eval_date", "DATE", "The later of the two dates; never NULL."),
        Column("eval_date_a", "DATE", "Evaluation of model_a that was compared; never NULL."),
        Column("eval_date_b", "DATE", "Evaluation of model_b that was compared; never NULL."),
        Column("simulated", "BOOLEAN", "true: at least one of the two is a stand-in and no real model; never NULL."),
        Column("n", "BIGINT", "Turns and samples that both answered and that are scored for both, from 0; never NULL."),
        Column("clusters", "BIGINT", "Number of independent groups (conversations) among them, from 0; never NULL."),
        Column("accuracy_a", "DOUBLE", "Share of them that model_a got right, 0..1; NULL: no common turns."),
        Column("accuracy_b", "DOUBLE", "Share of them that model_b got right, 0..1; NULL: no common turns."),
        Column(
            "difference", "DOUBLE", "accuracy_b - accuracy_a, -1..1; NULL: no common turns, or they cannot be compared."
        ),
        Column("se", "DOUBLE", f"Standard error of the difference, clustered by conversation; {_NO_TEST}."),
        Column("low", "DOUBLE", f"Lower end of the 95% interval of the difference, not corrected; {_NO_TEST}."),
        Column("high", "DOUBLE", f"Upper end of the 95% interval of the difference, not corrected; {_NO_TEST}."),
        Column(
            "p_value",
            "DOUBLE",
            f"p-value of the hypothesis of no difference, two-sided, not corrected, 0..1; {_NO_TEST}.",
        ),
        Column(
            "p_exact",
            "DOUBLE",
            f"The same p-value from an exact test that flips the signs of whole conversations, 0..1; {_NO_TEST}.",
        ),
        Column(
            "p_decisive",
            "DOUBLE",
            f"Largest of p_value, p_exact and the two conservative p-values; used by the verdict; 0..1; {_NO_TEST}.",
        ),
        Column(
            "method",
            "VARCHAR",
            "Test behind p_value: `t_clustered`, `mcnemar_exact` (few conversations changed) or `none`; never NULL.",
        ),
        Column(
            "pairs",
            "BIGINT",
            "Number of tested pairs of the suite, for which Holm's method corrects, from 0; never NULL.",
        ),
        Column("p_corrected", "DOUBLE", f"p_decisive, corrected by Holm's method over these pairs, 0..1; {_NO_TEST}."),
        Column("low_corrected", "DOUBLE", f"Lower end of the interval at Holm's level; {_NO_TEST}."),
        Column("high_corrected", "DOUBLE", f"Upper end of the interval at Holm's level; {_NO_TEST}."),
        Column(
            "verdict",
            "VARCHAR",
            "`b_better`, `a_better` (p_corrected is below 5%, and the corrected intervals of both figures exclude 0 on "
            "one side) or `not_significant`; " + _NO_TEST + ".",
        ),
        Column(
            "note", "VARCHAR", "What was not answered, and where tests or figures disagree; NULL: nothing to remark."
        ),
        Column("broken", "BIGINT", "Turns that both answered and only model_a got right, from 0; never NULL."),
        Column("fixed", "BIGINT", "Turns that both answered and only model_b got right, from 0; never NULL."),
        Column(
            "changed_conversations", "BIGINT", "Conversations in which the number of right turns differs; never NULL."
        ),
        Column("broken_turns", "JSON", "Ids of the broken turns, `~<sample>` added from sample 1 on; never NULL."),
        Column("fixed_turns", "JSON", "Ids of the fixed turns, likewise; never NULL."),
        Column(
            "correlation",
            "DOUBLE",
            "Correlation of the two models' verdicts over the turns (phi), -1..1; NULL: one of them is constant.",
        ),
        Column(
            "minimum_detectable_difference",
            "DOUBLE",
            "Smallest true difference that would have been found with a probability of 80%, 0..1; NULL: see "
            "`reason`, or there is none up to 1.",
        ),
        *_paired_mean("tokens", "Tokens, including recovery attempts,"),
        *_paired_mean("usd", "US dollars"),
        *_paired_mean("latency_ms", "Milliseconds of calls"),
        *_front("a"),
        *_front("b"),
        *_CONSERVATIVE,
        *_coverage("a"),
        *_coverage("b"),
        Column("reason", "VARCHAR", "Why there is no test; NULL: there is one."),
    ),
    key="suite",
)


def _against(name: str, which: str) -> tuple[Column, ...]:
    """Returns the columns of the paired test of an evaluation against an earlier one."""
    none = f"NULL: no {which} to test against"
    return (
        Column(f"{name}_date", "DATE", f"The {which}; NULL: there is none, or a break lies in between."),
        Column(f"{name}_n", "BIGINT", f"Turns and samples scored on both dates; {none}."),
        Column(f"{name}_difference", "DOUBLE", f"Accuracy minus that of the {which} on common turns, -1..1; {none}."),
        Column(f"{name}_low", "DOUBLE", f"Lower end of its interval at Holm's level; {none}."),
        Column(f"{name}_high", "DOUBLE", f"Upper end of its interval at Holm's level; {none}."),
        Column(
            f"{name}_p_value",
            "DOUBLE",
            f"p-value of the hypothesis of no difference, two-sided, not corrected, 0..1; {none}.",
        ),
        Column(f"{name}_p_corrected", "DOUBLE", f"The same, corrected by Holm's method over the two tests; {none}."),
        Column(f"{name}_broken", "BIGINT", f"Turns right on the {which} and wrong now, from 0; {none}."),
        Column(f"{name}_fixed", "BIGINT", f"Turns wrong on the {which} and right now, from 0; {none}."),
        Column(f"{name}_verdict", "VARCHAR", f"`loss`, `gain` or `not_significant`; {none}."),
    )


COMPARED_TRENDS = Table(
    "compared_trends",
    "One row per model version and evaluation date of a suite: the accuracy over time, tested turn by turn against the "
    "previous date and against the first date since the last break. Only evaluations of the scope in "
    "`latest_partitions`, and only those that have been compared: ask the view `trends`, which has the others, too.",
    (
        Column("model_version", "VARCHAR", "Model version the row belongs to; never NULL."),
        Column("eval_date", "DATE", "Logical date of the evaluation; never NULL."),
        Column("simulated", "BOOLEAN", "true: the responses are not from a real model; never NULL."),
        Column("retired", "BOOLEAN", "true: it is no longer in any file of model versions; never NULL."),
        Column("scope", "VARCHAR", "`full`, or which part of the suite is evaluated each time; never NULL."),
        Column("planned", "BIGINT", "Turns and samples planned, from 0; NULL: not on record (made by 0.1.0)."),
        Column("asked", "BIGINT", "Turns of these that the model was asked, from 0; NULL: not on record."),
        Column("answered", "BIGINT", "Turns of these with a response, from 0; NULL: not on record."),
        Column("readable", "BIGINT", "Turns of these with an answer that could be read, from 0; NULL: not on record."),
        Column("n", "BIGINT", "Turns and samples scored, from 0; never NULL."),
        Column("clusters", "BIGINT", "Number of independent groups (conversations) among them, from 0; never NULL."),
        Column("accuracy", "DOUBLE", "Share of them that are right, 0..1; NULL: there are no turns."),
        Column("low", "DOUBLE", "Lower end of its 95% interval; NULL: there is only one conversation, or none."),
        Column("high", "DOUBLE", "Upper end of its 95% interval; NULL: there is only one conversation, or none."),
        Column(
            "tokens_total",
            "BIGINT",
            "Input and output tokens of all attempts; NULL: the provider does not report them.",
        ),
        Column("usd_total", "DOUBLE", "US dollars of all attempts; NULL: no known price."),
        Column(
            "break_reason",
            "VARCHAR",
            "What changed since the previous date, so that the two are not compared: `suite`, `prompt`, `harness`, "
            "`scorer`, `judge`, `served`, separated by commas; NULL: nothing.",
        ),
        Column(
            "served_model",
            "VARCHAR",
            "Models that answered, as the provider names them, separated by commas; NULL: not reported.",
        ),
        Column(
            "system_fingerprint", "VARCHAR", "Fingerprints of the systems that ran them, likewise; NULL: not reported."
        ),
        Column(
            "served_change", "VARCHAR", "The models that answered before and now, if they differ; NULL: they do not."
        ),
        *_against("previous", "previous date"),
        *_against("first", "first date since a break"),
        Column(
            "verdict",
            "VARCHAR",
            "`start`, `break`, `loss` or `gain` (against the previous date), else `drift_down` or `drift_up` (against "
            "the first), else `no_change`; NULL: see `reason`.",
        ),
        Column("reason", "VARCHAR", "Why there is no test; NULL: there is a test, or nothing to test against."),
        Column(
            "open_loss_date", "DATE", f"Date of the last `loss` from which the model has not recovered; {_NO_LOSS}."
        ),
        Column("open_loss_against", "DATE", f"The date that this loss was measured against; {_NO_LOSS}."),
        Column("open_loss_difference", "DOUBLE", f"Accuracy minus that of `open_loss_against`, -1..1; {_NO_LOSS}."),
        Column(
            "open_loss_p_value",
            "DOUBLE",
            f"p-value of the hypothesis of no difference from it, not corrected, 0..1; {_NO_LOSS}.",
        ),
    ),
    key="suite",
    sources=("trends",),
)

ACKNOWLEDGEMENTS = Table(
    "acknowledgements",
    "Losses that somebody has acknowledged, so that they no longer make runs fail: one row per acknowledgement.",
    (
        Column("model_version", "VARCHAR", "Model version that lost; never NULL."),
        Column("open_loss_date", "DATE", "Date of the loss, as in `trends`; never NULL."),
        Column("who", "VARCHAR", "Who acknowledged it; never NULL."),
        Column("why", "VARCHAR", "The reason given; never NULL."),
        Column("acknowledged_at", "TIMESTAMP", "Time, UTC; never NULL."),
    ),
    key="suite",
)

METRIC_COMPARISONS = Table(
    "metric_comparisons",
    "One row per pair of model versions of a suite and graded metric that its track compares, with the latest "
    "evaluations, over the turns and samples that both answered and that have a value for both.",
    (
        Column("model_a", "VARCHAR", "A model version; never NULL."),
        Column("model_b", "VARCHAR", "The model version that it is compared with; never NULL."),
        Column("eval_date_a", "DATE", "Evaluation of model_a that was compared; never NULL."),
        Column("eval_date_b", "DATE", "Evaluation of model_b that was compared; never NULL."),
        Column("metric", "VARCHAR", "Name of the metric; never NULL."),
        Column("n", "BIGINT", "Turns and samples with a value for both, from 0; never NULL."),
        Column("clusters", "BIGINT", "Number of independent groups (conversations) among them, from 0; never NULL."),
        Column("mean_a", "DOUBLE", "Mean of model_a over these turns, 0..1; NULL: there are none."),
        Column("mean_b", "DOUBLE", "Mean of model_b over these turns, 0..1; NULL: there are none."),
        Column("difference", "DOUBLE", "mean_b - mean_a, -1..1; NULL: no common turns, or they cannot be compared."),
        Column("se", "DOUBLE", f"Standard error of the difference, clustered by conversation; {_NO_TEST}."),
        Column("low", "DOUBLE", f"Lower end of its 95% interval, not corrected; {_NO_TEST}."),
        Column("high", "DOUBLE", f"Upper end of its 95% interval, not corrected; {_NO_TEST}."),
        Column("p_value", "DOUBLE", f"p-value of a t test clustered by conversation, 0..1; {_NO_TEST}."),
        Column(
            "p_flips",
            "DOUBLE",
            f"p-value of a test that flips the signs of whole conversations at random, 0..1; {_NO_TEST}.",
        ),
        Column(
            "p_corrected",
            "DOUBLE",
            f"The larger of both, corrected by Holm's method over the suite's pairs and metrics; {_NO_TEST}.",
        ),
        Column(
            "verdict",
            "VARCHAR",
            f"`b_better`, `a_better` (p_corrected is below 5%) or `not_significant`; {_NO_TEST}.",
        ),
        Column("reason", "VARCHAR", "Why there is no test; NULL: there is one."),
    ),
    key="suite",
)

COMPARISON_TABLES = (MODEL_COMPARISONS, METRIC_COMPARISONS, COMPARED_TRENDS, ACKNOWLEDGEMENTS)
