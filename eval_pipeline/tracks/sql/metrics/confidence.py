"""The confidence that the model states."""

from eval_pipeline.tracks.metric import Metric


def confidence(said_confidence: str | None) -> str | None:
    """Returns the confidence in the model's own word."""
    return said_confidence


METRIC = Metric("confidence", confidence, "label", "`high`, `medium` or `low`; NULL: the model did not say.")
