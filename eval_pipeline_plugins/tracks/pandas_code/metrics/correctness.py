"""Correctness: compares the final result with the expected one."""

from collections.abc import Mapping, Sequence

from eval_pipeline.core.model import Json, MetricResult
from eval_pipeline.table_comparison.contracts import contract_line, excess


def correctness_score(result_verdict: str | None, result_score: float | None, result_message: str) -> MetricResult:
    """Returns 1.0 for the expected result, otherwise the F1 of matched cells; 0.0 if there is no result."""
    if result_verdict is None:
        return MetricResult(0.0, reason="there is no code")
    if result_score is None:
        return MetricResult(None, reason=result_message)
    return MetricResult(result_score, reason=result_message or None)


def result_match(
    correctness_score: float | None,
    result_message: str,
    needed: Sequence[Sequence[str]],
    may_overlook: Sequence[str],
    failure: Mapping[str, Json] | None,
) -> MetricResult:
    """Returns whether the result is the expected one; of another one the reason says what is wrong.

    Args:
        correctness_score: the metric.
        result_message: the first difference between the results.
        needed: sets of relaxations each of which would make them equal.
        may_overlook: what the contract overlooks.
        failure: `why` of `failures.finding`; None if nothing shows it.
    """
    if correctness_score == 1.0:
        return MetricResult(True)
    told = str(failure["why"]) if failure is not None else result_message
    line = f"right with `{contract_line(excess(needed, may_overlook))}`" if needed else ""
    return MetricResult(False, reason="; ".join(filter(None, (told, line))) or None)
