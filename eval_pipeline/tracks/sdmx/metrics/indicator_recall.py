"""Recall of the dimensions that make the indicator."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.metrics.means import mean
from eval_pipeline.tracks.sdmx.scoring import PlaceScore


def indicator_recall(places: Sequence[PlaceScore]) -> float | None:
    """Returns the mean recall over the target's (data set, dimension) pairs that make the indicator."""
    return mean(place.recall for place in places if place.indicator)


METRIC = Metric(
    "indicator_recall",
    indicator_recall,
    "score",
    "Mean of tp / (tp + fn) over the target's pairs in indicator_dimensions, 0..1; NULL where the target has none.",
)
