"""The relative match: within 1%."""

from eval_pipeline.tracks.finqa.matching import Answer, answers_soft_match
from eval_pipeline.tracks.metric import Metric


def soft_match(predicted: Answer, expected: float | str) -> bool:
    """Whether |p - e| <= 0.01 |e|; text answers must say the same word."""
    return answers_soft_match(predicted, expected)


METRIC = Metric("soft_match", soft_match, "boolean", "Answer within 1% of the expected one; NULL: not scored.")
