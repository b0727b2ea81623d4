"""Test-suite accuracy: the same result on several databases of one schema (Zhong, Yu, Klein 2020)."""

from collections.abc import Mapping

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.metrics.published import published_result


def test_suite(
    generated: str | None,
    execution: str | None,
    published: Mapping[str, float],
    further_databases: int,
    should_pass: bool,
    changes_data: bool,
) -> MetricResult:
    """Returns the score of a turn."""
    if should_pass and not changes_data and not further_databases:
        return MetricResult(None, reason="the suite has one database of this schema")
    return published_result("test_suite", generated, execution, published, should_pass, changes_data)


METRIC = Metric(
    "test_suite",
    test_suite,
    "boolean",
    "Test-suite accuracy: spider_execution on every database that the suite has for the schema; 0 without SQL or where "
    "it does not run; NULL where no SQL is expected or there is one database only.",
)
