"""Performance: CPU time and memory compared with the reference code."""

from collections.abc import Mapping

from eval_pipeline.core.model import MetricResult

TIME_WEIGHT, MEMORY_WEIGHT = 0.7, 0.3
GOOD_RATIO = 0.8
NEGLIGIBLE_MS = NEGLIGIBLE_MIB = 10.0


def part(reference: float, generated: float, negligible: float) -> float:
    """Returns min(1, reference / generated); 1 if the ratio is at least `GOOD_RATIO` or both are below `negligible`."""
    if max(reference, generated) < negligible or reference >= GOOD_RATIO * generated:
        return 1.0
    return reference / generated


def performance_score(
    ran: bool, has_reference: bool, closed_answer: bool, cost: Mapping[str, float] | None
) -> MetricResult:
    """Returns 0.7 times the part for time plus 0.3 times the part for memory; 0.0 if the code does not run.

    Args:
        ran: whether the final attempt ran.
        has_reference: whether the suite has reference code for the turn, in the dialect of the answers.
        closed_answer: whether the final attempt is a recorded answer without code.
        cost: `generated_ms`, `reference_ms`, `generated_mib`, `reference_mib`; None if it was not measured.
    """
    if not has_reference:
        return MetricResult(None, reason="the suite has no reference code to compare the cost with")
    if not ran:
        return MetricResult(0.0)
    if closed_answer:
        return MetricResult(None, reason="the prediction is an answer without code")
    if cost is None:
        return MetricResult(0.0, reason="it did not run when it was measured")
    time = part(cost["reference_ms"], cost["generated_ms"], NEGLIGIBLE_MS)
    memory = part(cost["reference_mib"], cost["generated_mib"], NEGLIGIBLE_MIB)
    return MetricResult(
        TIME_WEIGHT * time + MEMORY_WEIGHT * memory, details={"time_part": time, "memory_part": memory, **cost}
    )
