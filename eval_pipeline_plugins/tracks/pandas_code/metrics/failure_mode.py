"""Determines what went wrong, in one word, with the evidence for it."""

from collections.abc import Mapping

from eval_pipeline.core.model import ErrorClass, Json, MetricResult

_UNKNOWN = "nothing shows what went wrong: no few steps mend the code, and no part of the result tells"


def failure_mode(
    result_match: bool,
    no_answer: bool,
    answered: bool,
    error_class: str | None,
    result_message: str,
    failure: Mapping[str, Json] | None,
) -> MetricResult:
    """Returns the failure mode of a wrong answer; no label for the expected result, or if nothing shows the mode.

    Args:
        result_match: whether it is the expected result.
        no_answer: whether there is no text.
        answered: whether there is code, or a recorded answer.
        error_class: the class of the error if the code did not run.
        result_message: what was wrong; used as the reason.
        failure: `mode` and `why` of an answer that ran (`failures.finding`); None if nothing shows them.
    """
    if result_match:
        return MetricResult(None)
    tried = (
        (no_answer, "no_answer"),
        (not answered, "malformed_answer"),
        (error_class == ErrorClass.SYNTAX, "syntax_error"),
        (error_class == ErrorClass.TIMEOUT, "timeout"),
        (error_class == ErrorClass.COLUMN, "unknown_column"),
        (error_class == ErrorClass.TYPE, "wrong_dtype"),
        (error_class is not None, "execution_error"),
    )
    mode = next((mode for applies, mode in tried if applies), None)
    if mode is not None:
        return MetricResult(label=mode, reason=result_message or None)
    if failure is None:
        return MetricResult(None, reason=_UNKNOWN)
    return MetricResult(label=failure["mode"], reason=failure["why"])
