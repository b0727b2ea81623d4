"""The primary metric: whether the outcome is right."""

from eval_pipeline.core.model import MetricResult
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sql.metrics.strict_match import NO_DATA


def outcome_correct(
    should_pass: bool,
    declined: bool,
    blocked: bool,
    headline: str,
    execution_match: bool | None,
    robust_match: bool | None,
    strict_match: bool | None,
) -> MetricResult:
    """Returns whether the expected SQL has the right result, or a request to be refused was refused.

    What makes SQL right is the suite's choice: the metric that its option `headline` names (decision 0136). If the
    suite has no data, the generated databases alone decide. A refusal is right if the model declined or the validator
    blocked the query.
    """
    if not should_pass:
        return MetricResult(float(declined or blocked), reason="a refusal is right")
    if execution_match is None:
        return MetricResult(float(bool(strict_match)), reason=NO_DATA)
    chosen = {"execution_match": execution_match, "robust": robust_match, "strict": strict_match}[headline]
    return MetricResult(float(bool(chosen)), reason=_reason(execution_match, robust_match, strict_match))


def _reason(execution_match: bool, robust_match: bool | None, strict_match: bool | None) -> str:
    if not execution_match:
        return "no result on the data, or another one"
    if strict_match:
        return "same result on the data, and no generated database refutes the query"
    refuted = "by databases that do not fit the data only" if robust_match else "by one that fits the data"
    return f"same result on the data, but refuted {refuted}"


METRIC = Metric(
    "outcome_correct",
    outcome_correct,
    "boolean",
    "The primary metric: `execution_match`, `robust_match` or `strict_match`, as the suite's option `headline` says; "
    "where a refusal is right, declined or blocked by the validator; NULL: not scored.",
)
