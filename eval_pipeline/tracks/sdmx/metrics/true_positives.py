"""Number of terms that are in the target and were selected."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.scoring import PlaceScore


def true_positives(places: Sequence[PlaceScore]) -> int:
    """Counts terms that are in the target and were selected, over all data sets and dimensions."""
    return sum(place.count("tp") for place in places)


METRIC = Metric(
    "true_positives",
    true_positives,
    "count",
    "Terms in the target and selected, from 0; NULL: not scored.",
)
