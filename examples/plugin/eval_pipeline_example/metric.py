"""A metric of the track finqa: a suite asks for it with `metrics: [has_digits]`."""

from eval_pipeline.tracks.base import Metric

DIGITS = "0123456789"


def has_digits(predicted: float | str | None) -> bool | None:
    """Whether the answer has a digit; None where there is no answer."""
    return None if predicted is None else any(digit in str(predicted) for digit in DIGITS)


METRIC = Metric("has_digits", has_digits, "boolean", "The answer has a digit; NULL: there is no answer.")
