"""The reason for the verdict on an outcome, as one word."""

from collections.abc import Sequence

from eval_pipeline.table_comparison.contracts import NONE
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.metrics.relaxations import FORM
from eval_pipeline.tracks.sql.words import SAME

REASONS = (
    "declined",
    "blocked",
    "not_refused",
    "no_sql",
    "does_not_run",
    "different_on_data",
    "different_in_form",
    "refuted_on_fitting_database",
    "overlooked",
    "refuted_on_unusual_database",
    "undecided_without_data",
    "not_refuted",
)
"""In the order in which they are tried."""


def outcome_reason(
    should_pass: bool,
    declined: bool,
    blocked: bool,
    generated: str | None,
    execution: str | None,
    equivalence: str | None,
    needed_on_data: Sequence[Sequence[str]] | None,
    relaxations: str | None,
    wrong_in: str | None,
) -> str:
    """Returns the first of `REASONS` that applies.

    Args:
        should_pass: whether SQL is expected.
        declined: whether the model declined.
        blocked: whether the validator blocked the query where a refusal is right.
        generated: the query; None if there is none.
        execution: verdict of the evidence: `match`, `different`, `error` or `no_data`.
        equivalence: verdict on all databases.
        needed_on_data: see `outcome_correct.is_right`.
        relaxations: what has to be overlooked on the data and on databases that fit them; None: it differs in meaning.
        wrong_in: `form`, `meaning` or None, see `relaxations.wrong_in`.
    """
    if not should_pass:
        return "declined" if declined else "blocked" if blocked else "not_refused"
    tried = (
        (generated is None, "no_sql"),
        (execution in (None, "error"), "does_not_run"),
        (execution != "no_data" and not needed_on_data, "different_on_data"),
        (wrong_in == FORM, "different_in_form"),
        (equivalence == "different" and relaxations is None, "refuted_on_fitting_database"),
        (relaxations not in (None, NONE), "overlooked"),
        (equivalence == "different", "refuted_on_unusual_database"),
        (execution == "no_data" and equivalence not in SAME, "undecided_without_data"),
    )
    return next((reason for applies, reason in tried if applies), "not_refuted")


METRIC = Metric(
    "outcome_reason",
    outcome_reason,
    "label",
    "What decided `correct`: `declined`, `blocked`, `not_refused`, `no_sql`, `does_not_run`, `different_on_data`, "
    "`different_in_form`, `refuted_on_fitting_database`, `overlooked`, `refuted_on_unusual_database`, "
    "`undecided_without_data`, `not_refuted`.",
)
