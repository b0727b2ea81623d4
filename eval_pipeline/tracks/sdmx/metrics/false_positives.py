"""Number of terms that were selected but are not in the target."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.scoring import PlaceScore


def false_positives(places: Sequence[PlaceScore]) -> int:
    """Counts terms that were selected but are not in the target, over all data sets and dimensions."""
    return sum(place.count("fp") for place in places)


METRIC = Metric(
    "false_positives",
    false_positives,
    "count",
    "Terms selected and not in the target, from 0; NULL: not scored.",
)
