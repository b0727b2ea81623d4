"""What went wrong, in one word."""

from collections.abc import Collection

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.pandas_code.results.structure import AGGREGATES, FILTERS, GROUPINGS, JOINS, LIMITS, SORTS

FAILURE_MODES = (
    "no_answer",
    "malformed_answer",
    "syntax_error",
    "unknown_column",
    "wrong_dtype",
    "execution_error",
    "wrong_n",
    "missing_sort",
    "wrong_filter",
    "wrong_join",
    "wrong_grouping",
    "wrong_aggregate",
    "other",
)
"""In the order they are tried."""


def failure_mode(
    result_match: bool, no_answer: bool, answered: bool, error_class: str | None, differing: Collection[str]
) -> str | None:
    """The first of `FAILURE_MODES` that applies; None for the expected result.

    Of code that runs, the modes say in what it differs from the reference code: N of a top or bottom, sorting,
    conditions, joins, grouping, aggregates.
    """
    if result_match:
        return None
    tried = (
        (no_answer, "no_answer"),
        (not answered, "malformed_answer"),
        (error_class == ErrorClass.SYNTAX, "syntax_error"),
        (error_class == ErrorClass.COLUMN, "unknown_column"),
        (error_class == ErrorClass.TYPE, "wrong_dtype"),
        (error_class is not None, "execution_error"),
        (LIMITS in differing, "wrong_n"),
        (SORTS in differing, "missing_sort"),
        (FILTERS in differing, "wrong_filter"),
        (JOINS in differing, "wrong_join"),
        (GROUPINGS in differing, "wrong_grouping"),
        (AGGREGATES in differing, "wrong_aggregate"),
    )
    return next((mode for applies, mode in tried if applies), "other")


METRIC = Metric(
    "failure_mode",
    failure_mode,
    "label",
    "Why the result is not the expected one, first that applies; NULL where it is.",
)
