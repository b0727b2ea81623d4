"""Execution accuracy as BIRD counts it (bird-bench/mini_dev, evaluation_ex.py)."""

from collections.abc import Mapping

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.metrics.published import WHERE_NULL, Rows, published_result


def same_row_sets(generated: Rows, expected: Rows) -> float:
    """Returns 1.0 if both results have the same set of rows: neither order nor repetition of rows counts.

    The order of columns counts. Values are equal as Python compares them, without a tolerance.
    """
    return float(set(generated) == set(expected))


def bird_ex(
    generated: str | None,
    execution: str | None,
    published: Mapping[str, float],
    should_pass: bool,
    changes_data: bool = False,
) -> MetricResult:
    """Returns the score of a turn."""
    return published_result("bird_ex", generated, execution, published, should_pass, changes_data)


METRIC = Metric(
    "bird_ex",
    bird_ex,
    "boolean",
    f"BIRD's EX: the same set of rows as an accepted query, without regard to order and repetition; {WHERE_NULL}",
)
