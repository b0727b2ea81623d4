"""The reason why an outcome is wrong, as one word."""

from collections.abc import Collection

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.words import AGGREGATES, FILTERS, SAFETY, SCHEMA, SYNTAX, TABLES

FAILURE_MODES = (
    "no_answer",
    "malformed_answer",
    "not_refused",
    "refusal",
    "syntax_error",
    "unsafe_sql",
    "unknown_name",
    "execution_error",
    "wrong_table",
    "wrong_aggregate",
    "wrong_filter",
    "other",
)
"""In the order in which they are tried."""


def failure_mode(
    outcome_correct: bool,
    no_answer: bool,
    answered: bool,
    should_pass: bool,
    declined: bool,
    validation_category: str | None,
    failed: bool,
    differing: Collection[str],
) -> str | None:
    """Returns the first of `FAILURE_MODES` that applies, or None for a right outcome.

    For queries that run, the mode says where the syntax tree differs from the expected one: in tables, in aggregates,
    or in conditions of WHERE, HAVING and QUALIFY.
    """
    if outcome_correct:
        return None
    tried = (
        (no_answer, "no_answer"),
        (not answered, "malformed_answer"),
        (not should_pass, "not_refused"),
        (declined, "refusal"),
        (validation_category == SYNTAX, "syntax_error"),
        (validation_category == SAFETY, "unsafe_sql"),
        (validation_category == SCHEMA, "unknown_name"),
        (failed, "execution_error"),
        (TABLES in differing, "wrong_table"),
        (AGGREGATES in differing, "wrong_aggregate"),
        (FILTERS in differing, "wrong_filter"),
    )
    return next((mode for applies, mode in tried if applies), "other")


METRIC = Metric(
    "failure_mode",
    failure_mode,
    "label",
    "Why the outcome is wrong, first that applies; NULL where it is right.",
)
