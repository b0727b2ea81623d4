"""Recall of all dimensions but those that make the indicator."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.metrics.means import mean
from eval_pipeline.tracks.sdmx.scoring import PlaceScore


def other_recall(places: Sequence[PlaceScore]) -> float | None:
    """Returns the mean recall over the target's (data set, dimension) pairs that do not make the indicator."""
    return mean(place.recall for place in places if not place.indicator)


METRIC = Metric(
    "other_recall",
    other_recall,
    "score",
    "Mean of tp / (tp + fn) over the target's pairs in other dimensions, 0..1; NULL where the target has none.",
)
