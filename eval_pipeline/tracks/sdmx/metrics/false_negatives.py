"""Number of terms that are in the target but were not selected."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.scoring import PlaceScore


def false_negatives(places: Sequence[PlaceScore]) -> int:
    """Counts terms that are in the target but were not selected, over all data sets and dimensions."""
    return sum(place.count("fn") for place in places)


METRIC = Metric(
    "false_negatives",
    false_negatives,
    "count",
    "Terms in the target and not selected, from 0; NULL: not scored.",
)
