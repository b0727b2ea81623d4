"""A metric of the track finqa: a suite asks for it with `metrics: [has_digits]`."""

from eval_pipeline.tracks.base import Metric


def has_digits(predicted: float | str | None) -> bool | None:
    """Whether the answer has a digit; None where there is no answer."""
    return None if predicted is None else any(map(str.isdigit, str(predicted)))


METRIC = Metric("has_digits", has_digits, "boolean", "The answer has a digit; NULL: there is no answer.")
