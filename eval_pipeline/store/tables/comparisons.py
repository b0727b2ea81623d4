"""What the store keeps of evaluations side by side: model against model, night after night (docs/statistics.md)."""

from eval_pipeline.store.schemas import Column, Table

_NO_TEST = "NULL: see `reason`"
_NO_LOSS = "NULL: no loss is open"


def _paired_mean(name: str, unit: str) -> tuple[Column, ...]:
    """A cost of both models on their common turns, and its paired difference."""
    unknown = "NULL: not known of every common turn"
    return (
        Column(f"{name}_a", "DOUBLE", f"{unit} a common turn, of model_a; {unknown}."),
        Column(f"{name}_b", "DOUBLE", f"{unit} a common turn, of model_b; {unknown}."),
        Column(f"{name}_difference", "DOUBLE", f"{name}_b - {name}_a; {unknown} of both."),
        Column(f"{name}_difference_low", "DOUBLE", f"Lower end of its 95% interval; {unknown}, or one conversation."),
        Column(f"{name}_difference_high", "DOUBLE", f"Upper end of its 95% interval; {unknown}, or one conversation."),
    )


_REACHED = {
    "planned": "Turns and samples that the run of {} planned",
    "asked": "Of these, put to the model",
    "answered": "Of these, with a response",
    "readable": "Of these, with an answer that could be read",
    "scored": "Turns and samples with a verdict, which {}'s accuracy counts",
}


def _coverage(side: str) -> tuple[Column, ...]:
    """How far the turns of an evaluation got, as the table `coverage` has it."""
    of = f"model_{side}"
    return tuple(
        Column(f"{name}_{side}", "BIGINT", f"{text.format(of)}, from 0; NULL: not on record (made by 0.1.0).")
        for name, text in _REACHED.items()
    )


_NO_CONSERVATIVE = "NULL: it has no test, or not comparable"
_CONSERVATIVE = (
    Column("unanswered_a", "BIGINT", "Turns of `conservative_n` that model_a did not answer, from 0; never NULL."),
    Column("unanswered_b", "BIGINT", "Turns of `conservative_n` that model_b did not answer, from 0; never NULL."),
    Column("conservative_n", "BIGINT", "Turns and samples scored for both, answered or not, from 0; never NULL."),
    Column("conservative_accuracy_a", "DOUBLE", "Share that model_a got right, unanswered ones wrong; NULL: no turns."),
    Column("conservative_accuracy_b", "DOUBLE", "Share that model_b got right, unanswered ones wrong; NULL: no turns."),
    Column(
        "conservative_difference", "DOUBLE", f"conservative_accuracy_b - conservative_accuracy_a; {_NO_CONSERVATIVE}."
    ),
    Column("conservative_low", "DOUBLE", f"Lower end of its 95% interval, as if alone; {_NO_CONSERVATIVE}."),
    Column("conservative_high", "DOUBLE", f"Upper end of its 95% interval, as if alone; {_NO_CONSERVATIVE}."),
    Column("conservative_p_value", "DOUBLE", f"As `p_value`, of this difference; {_NO_CONSERVATIVE}."),
    Column("conservative_p_exact", "DOUBLE", f"As `p_exact`, of this difference; {_NO_CONSERVATIVE}."),
    Column("conservative_method", "VARCHAR", "As `method`, of conservative_p_value; never NULL."),
    Column("conservative_broken", "BIGINT", "Turns that only model_a got right, unanswered ones too; never NULL."),
    Column("conservative_fixed", "BIGINT", "Turns that only model_b got right, unanswered ones too; never NULL."),
    Column(
        "conservative_verdict",
        "VARCHAR",
        "What this figure says alone, corrected by Holm; the gate `--baseline` goes by it; " + _NO_CONSERVATIVE + ".",
    ),
)


def _front(side: str) -> tuple[Column, Column]:
    """Where a model version stands between cost and accuracy."""
    return (
        Column(
            f"pareto_cost_{side}",
            "VARCHAR",
            f"Cost by which model_{side} is held against others: `usd` a turn where known of all of them, else "
            "`tokens`; NULL: neither is.",
        ),
        Column(
            f"on_front_{side}",
            "BOOLEAN",
            f"No other latest evaluation of the suite is as cheap and as accurate as that of model_{side}, and better "
            f"in one; stand-ins are held against stand-ins, models against models; NULL: no pareto_cost_{side}.",
        ),
    )


MODEL_COMPARISONS = Table(
    "model_comparisons",
    "One row a pair of model versions of a suite, each with its latest evaluation (as `latest_partitions` chooses), on "
    "the turns and samples that both answered and were scored on; `conservative_…` on all scored for both, those "
    "without an answer wrong. model_a is the one that comes first by name.",
    (
        Column("model_a", "VARCHAR", "A model version; never NULL."),
        Column("model_b", "VARCHAR", "The model version that it is compared with; never NULL."),
        Column("eval_date", "DATE", "The later one of the two dates; never NULL."),
        Column("eval_date_a", "DATE", "Evaluation of model_a that was compared; never NULL."),
        Column("eval_date_b", "DATE", "Evaluation of model_b that was compared; never NULL."),
        Column("simulated", "BOOLEAN", "true: at least one of the two is a stand-in, no real model; never NULL."),
        Column("n", "BIGINT", "Turns and samples that both answered, scored for both, from 0; never NULL."),
        Column("clusters", "BIGINT", "Independent groups among them (conversations), from 0; never NULL."),
        Column("accuracy_a", "DOUBLE", "Share of them that model_a got right, 0..1; NULL: no common turns."),
        Column("accuracy_b", "DOUBLE", "Share of them that model_b got right, 0..1; NULL: no common turns."),
        Column("difference", "DOUBLE", "accuracy_b - accuracy_a, -1..1; NULL: no common turns, or not comparable."),
        Column("se", "DOUBLE", f"Standard error of the difference, clustered by conversation; {_NO_TEST}."),
        Column("low", "DOUBLE", f"Lower end of the 95% interval of the difference, as if alone; {_NO_TEST}."),
        Column("high", "DOUBLE", f"Upper end of the 95% interval of the difference, as if alone; {_NO_TEST}."),
        Column("p_value", "DOUBLE", f"Of no difference, two-sided, as if alone, 0..1; {_NO_TEST}."),
        Column("p_exact", "DOUBLE", f"The same by exact sign flips of whole conversations, 0..1; {_NO_TEST}."),
        Column(
            "p_decisive",
            "DOUBLE",
            f"The largest of p_value, p_exact and both of the conservative figure: the verdict's, 0..1; {_NO_TEST}.",
        ),
        Column(
            "method",
            "VARCHAR",
            "Of p_value: `t_clustered`, `mcnemar_exact` (few conversations changed) or `none` (no test); never NULL.",
        ),
        Column("pairs", "BIGINT", "Pairs of the suite that were tested, for which Holm corrects, from 0; never NULL."),
        Column("p_corrected", "DOUBLE", f"p_decisive corrected by Holm over these pairs, 0..1; {_NO_TEST}."),
        Column("low_corrected", "DOUBLE", f"Lower end of the interval at Holm's level; {_NO_TEST}."),
        Column("high_corrected", "DOUBLE", f"Upper end of the interval at Holm's level; {_NO_TEST}."),
        Column(
            "verdict",
            "VARCHAR",
            "`b_better`, `a_better` (p_corrected is below 5%, and the corrected intervals of both figures exclude 0 on "
            "one side) or `not_significant`; " + _NO_TEST + ".",
        ),
        Column("note", "VARCHAR", "What was not answered, and where tests or figures disagree; NULL: nothing of it."),
        Column("broken", "BIGINT", "Turns that both answered and only model_a got right, from 0; never NULL."),
        Column("fixed", "BIGINT", "Turns that both answered and only model_b got right, from 0; never NULL."),
        Column("changed_conversations", "BIGINT", "Conversations whose number of right turns differs; never NULL."),
        Column("broken_turns", "JSON", "Ids of the broken turns, `~<sample>` added from sample 1 on; never NULL."),
        Column("fixed_turns", "JSON", "Ids of the fixed turns, likewise; never NULL."),
        Column("correlation", "DOUBLE", "Of the verdicts over the turns (phi), -1..1; NULL: one of them is constant."),
        Column(
            "minimum_detectable_difference",
            "DOUBLE",
            "Smallest true difference that would have been found with a chance of 80%, 0..1; NULL: see `reason`, or "
            "none up to 1.",
        ),
        *_paired_mean("tokens", "Tokens, recovery attempts among them,"),
        *_paired_mean("usd", "US dollars"),
        *_paired_mean("latency_ms", "Milliseconds of the calls of"),
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
    """The paired test of a night against an earlier one."""
    none = f"NULL: no {which} to test against"
    return (
        Column(f"{name}_date", "DATE", f"The {which}; NULL: there is none, or a break lies between."),
        Column(f"{name}_n", "BIGINT", f"Turns and samples scored on both dates; {none}."),
        Column(f"{name}_difference", "DOUBLE", f"Accuracy minus that of the {which} on common turns, -1..1; {none}."),
        Column(f"{name}_low", "DOUBLE", f"Lower end of its interval at Holm's level; {none}."),
        Column(f"{name}_high", "DOUBLE", f"Upper end of its interval at Holm's level; {none}."),
        Column(f"{name}_p_value", "DOUBLE", f"Of no difference, two-sided, as if alone, 0..1; {none}."),
        Column(f"{name}_p_corrected", "DOUBLE", f"The same corrected by Holm over the two tests; {none}."),
        Column(f"{name}_broken", "BIGINT", f"Turns right on the {which} and wrong now, from 0; {none}."),
        Column(f"{name}_fixed", "BIGINT", f"Turns wrong on the {which} and right now, from 0; {none}."),
        Column(f"{name}_verdict", "VARCHAR", f"`loss`, `gain` or `not_significant`; {none}."),
    )


TRENDS = Table(
    "trends",
    "One row a model version and evaluation date of a suite: the series of accuracy, tested turn by turn against the "
    "previous date and against the first one since the last break. Evaluations of the scope that `latest_partitions` "
    "chooses.",
    (
        Column("model_version", "VARCHAR", "Model version the row belongs to; never NULL."),
        Column("eval_date", "DATE", "Logical date of the evaluation; never NULL."),
        Column("simulated", "BOOLEAN", "true: the responses are not a real model's; never NULL."),
        Column("retired", "BOOLEAN", "true: no file of model versions lists it any more; never NULL."),
        Column("scope", "VARCHAR", "`full`, or which part of the suite is evaluated each time; never NULL."),
        Column("planned", "BIGINT", "Turns and samples planned, from 0; NULL: not on record (made by 0.1.0)."),
        Column("asked", "BIGINT", "Of these, put to the model, from 0; NULL: not on record."),
        Column("answered", "BIGINT", "Of these, with a response, from 0; NULL: not on record."),
        Column("readable", "BIGINT", "Of these, with an answer that could be read, from 0; NULL: not on record."),
        Column("n", "BIGINT", "Turns and samples scored, from 0; never NULL."),
        Column("clusters", "BIGINT", "Independent groups among them (conversations), from 0; never NULL."),
        Column("accuracy", "DOUBLE", "Share of them that is right, 0..1; NULL: no turns."),
        Column("low", "DOUBLE", "Lower end of its 95% interval; NULL: one conversation only, or none."),
        Column("high", "DOUBLE", "Upper end of its 95% interval; NULL: one conversation only, or none."),
        Column("tokens_total", "BIGINT", "Input and output tokens of all attempts; NULL: not told by the provider."),
        Column("usd_total", "DOUBLE", "US dollars of all attempts; NULL: no price known."),
        Column(
            "break_reason",
            "VARCHAR",
            "What changed since the date before, so that no verdict is given across: `suite`, `prompt`, `harness`, "
            "`scorer`, `judge`, `served`, with commas; NULL: nothing.",
        ),
        Column(
            "served_model", "VARCHAR", "Models that answered, in the provider's words, with commas; NULL: not told."
        ),
        Column("system_fingerprint", "VARCHAR", "Fingerprints of the systems that ran them, likewise; NULL: not told."),
        Column("served_change", "VARCHAR", "Who answered before and now, where that changed; NULL: it has not."),
        *_against("previous", "previous date"),
        *_against("first", "first date since a break"),
        Column(
            "verdict",
            "VARCHAR",
            "`start`, `break`, `loss` or `gain` (against the previous date), else `drift_down` or `drift_up` (against "
            "the first), else `no_change`; NULL: see `reason`.",
        ),
        Column("reason", "VARCHAR", "Why there is no test; NULL: there is one, or nothing to test against."),
        Column("open_loss_date", "DATE", f"Date of the last `loss` that has not been made good since; {_NO_LOSS}."),
        Column("open_loss_against", "DATE", f"The date before it, from which the model lost; {_NO_LOSS}."),
        Column("open_loss_difference", "DOUBLE", f"Accuracy minus that of `open_loss_against`, -1..1; {_NO_LOSS}."),
        Column("open_loss_p_value", "DOUBLE", f"Of no difference from it, two-sided, as if alone, 0..1; {_NO_LOSS}."),
    ),
    key="suite",
)

ACKNOWLEDGEMENTS = Table(
    "acknowledgements",
    "Losses that somebody has looked at, so that they fail no run any more: one row each time somebody said so.",
    (
        Column("model_version", "VARCHAR", "Model version that lost; never NULL."),
        Column("open_loss_date", "DATE", "Date of the loss, as in `trends`; never NULL."),
        Column("who", "VARCHAR", "Who acknowledged it; never NULL."),
        Column("why", "VARCHAR", "The reason given; never NULL."),
        Column("acknowledged_at", "TIMESTAMP", "When, UTC; never NULL."),
    ),
    key="suite",
)

COMPARISON_TABLES = (MODEL_COMPARISONS, TRENDS, ACKNOWLEDGEMENTS)
