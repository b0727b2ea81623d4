"""The primary metric: whether the selection equals the target."""

from eval_pipeline.tracks.metric import Metric


def exact_selection(false_positives: int, false_negatives: int, answered: bool) -> bool:
    """Returns whether there is an answer in which no term is missing and no term is extra."""
    return answered and not false_positives and not false_negatives


METRIC = Metric(
    "exact_selection",
    exact_selection,
    "boolean",
    "Nothing is missing and nothing is extra; the primary metric; false without an answer; NULL: not scored.",
)
