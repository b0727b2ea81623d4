"""The reason for the verdict on an outcome, as one word."""

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.words import SAME

REASONS = (
    "declined",
    "blocked",
    "not_refused",
    "no_sql",
    "does_not_run",
    "different_on_data",
    "refuted_on_fitting_database",
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
    fits_data: bool | None,
) -> str:
    """Returns the first of `REASONS` that applies.

    Args:
        should_pass: whether SQL is expected.
        declined: whether the model declined.
        blocked: whether the validator blocked the query where a refusal is right.
        generated: the query; None if there is none.
        execution: verdict of the evidence: `match`, `different`, `error` or `no_data`.
        equivalence: verdict on all databases.
        fits_data: whether a generated database that refutes the query fits the data; None if that is not known.
    """
    if not should_pass:
        return "declined" if declined else "blocked" if blocked else "not_refused"
    tried = (
        (generated is None, "no_sql"),
        (execution in (None, "error"), "does_not_run"),
        (execution == "different", "different_on_data"),
        (equivalence == "different" and fits_data is False, "refuted_on_unusual_database"),
        (equivalence == "different", "refuted_on_fitting_database"),
        (execution == "no_data" and equivalence not in SAME, "undecided_without_data"),
    )
    return next((reason for applies, reason in tried if applies), "not_refuted")


METRIC = Metric(
    "outcome_reason",
    outcome_reason,
    "label",
    "What decided `correct`: `declined`, `blocked`, `not_refused`, `no_sql`, `does_not_run`, `different_on_data`, "
    "`refuted_on_fitting_database`, `refuted_on_unusual_database`, `undecided_without_data`, `not_refuted`.",
)
