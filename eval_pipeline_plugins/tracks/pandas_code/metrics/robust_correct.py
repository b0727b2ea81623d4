"""Whether an answer is right on the given tables and on all variants of them."""

from eval_pipeline.core.model import MetricResult


def robust_correct(
    result_match: bool, has_code: bool, varies: bool, variants: int | None, variants_right: int | None
) -> MetricResult:
    """Returns whether the result is the expected one on the given tables and on every variant.

    Args:
        result_match: whether the result on the given tables is the expected one.
        has_code: whether the response has code.
        varies: whether the suite has reference code for the turn that says what is right on other tables or inputs.
        variants: on how many variants the code was run; None if there are none, 0 for the reference code itself.
        variants_right: how many of them gave the expected result.
    """
    if not has_code:
        return MetricResult(None, reason="there is no code")
    if not varies:
        return MetricResult(None, reason="the suite has no reference code for this turn whose results decide")
    if not result_match:
        return MetricResult(False)
    if variants is None or variants_right is None:
        return MetricResult(None, reason="no variant on which the reference code has a determined result")
    reason = None if variants_right == variants else f"wrong on {variants - variants_right} of {variants} variants"
    return MetricResult(variants_right == variants, reason=reason)
