"""The primary metric: the outcome is the right one."""

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.metric import Metric


def outcome_correct(
    should_pass: bool, declined: bool, blocked: bool, execution_match: bool | None, equivalence: str | None
) -> MetricResult:
    """Whether SQL that was expected gives the right result, or a request that was to be refused was.

    SQL: same result as an accepted query on the suite's database and not refuted on a generated one; where the suite
    ships no data, the generated databases alone decide. A refusal: declined, or blocked by the validator.
    """
    if not should_pass:
        return MetricResult(float(declined or blocked))
    if execution_match is None:
        return MetricResult(float(equivalence in ("equivalent", "agreed")), reason="by generated databases alone")
    return MetricResult(float(execution_match and equivalence != "different"))


METRIC = Metric(
    "outcome_correct",
    outcome_correct,
    "boolean",
    "The primary metric: same result as an accepted query and not refuted on a generated database; where a refusal is "
    "right, declined or blocked by the validator; never NULL.",
)
