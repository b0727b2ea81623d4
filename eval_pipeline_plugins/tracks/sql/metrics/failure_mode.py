"""The reason why an outcome is wrong, as one word."""

from collections.abc import Collection, Mapping

from eval_pipeline.core.model import MetricResult
from eval_pipeline.table_comparison.contracts import excess, ways_of
from eval_pipeline_plugins.tracks.sql.cases.words import (
    AGGREGATES,
    COLUMNS,
    FILTERS,
    GROUPS,
    JOINS,
    ORDERS,
    SAFETY,
    SCHEMA,
    SETS,
    SYNTAX,
    TABLES,
)
from eval_pipeline_plugins.tracks.sql.metrics.verdict import FORM

FORMS = ("missing_columns", "extra_columns", "duplicates", "row_order", "rounding")
"""Modes of answers that are right but for their form, named after what would have to be overlooked."""
OTHER_FORM = "other_form"
MEANINGS = {
    TABLES: "wrong_table",
    JOINS: "wrong_join",
    AGGREGATES: "wrong_aggregate",
    FILTERS: "wrong_filter",
    GROUPS: "wrong_grouping",
    COLUMNS: "wrong_column",
    ORDERS: "wrong_order",
    SETS: "wrong_set_operation",
}
"""Modes of answers that are wrong in meaning, by the first part in which the syntax trees differ."""


def failure_mode(
    outcome_correct: bool,
    no_answer: bool,
    answered: bool,
    should_pass: bool,
    declined: bool,
    validation_category: str | None,
    failed: bool,
    wrong_in: str | None,
    relaxations: str | None,
    may_overlook: Collection[str],
    differing: Mapping[str, str],
    execution_message: str = "",
    changes_data: bool = False,
    changed_outside: bool = False,
) -> MetricResult:
    """Returns the first of `FAILURE_MODES` that applies, or None for a right outcome.

    For queries that run, the mode says what about the form would have to be overlooked, or else the first part in which
    the syntax tree differs from the expected one, with words for all of them in the reason; the reason of a form is
    the execution's message. For scripts that change data, it says whether they changed something that the task must not
    change.
    """
    if outcome_correct:
        return MetricResult(None)
    forms = excess(ways_of(relaxations), may_overlook) if wrong_in == FORM else frozenset[str]()
    tried = (
        (no_answer, "no_answer"),
        (not answered, "malformed_answer"),
        (not should_pass, "not_refused"),
        (declined, "refusal"),
        (validation_category == SYNTAX, "syntax_error"),
        (validation_category == SAFETY or changed_outside, "unsafe_sql"),
        (validation_category == SCHEMA, "unknown_name"),
        (failed, "execution_error"),
        (changes_data, "wrong_change"),
        *((form in forms, form) for form in FORMS),
        (bool(forms), OTHER_FORM),
        *((part in differing, mode) for part, mode in MEANINGS.items()),
    )
    mode = next((mode for applies, mode in tried if applies), "other")
    return MetricResult(None, mode, execution_message if forms else "; ".join(differing.values()) or None)
