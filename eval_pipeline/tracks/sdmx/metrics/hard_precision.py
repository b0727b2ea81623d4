"""Hard precision: a dimension is right or wrong as a whole, and wrong if the target does not use it."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.metrics.data_sets import is_selected
from eval_pipeline.tracks.sdmx.metrics.means import mean
from eval_pipeline.tracks.sdmx.scoring import PlaceScore


def hard_precision(places: Sequence[PlaceScore]) -> float | None:
    """Returns the share of the selected (data set, dimension) pairs without a false positive."""
    return mean(float(not place.count("fp")) for place in places if is_selected(place))


METRIC = Metric(
    "hard_precision",
    hard_precision,
    "score",
    "Selected pairs without a false positive / selected pairs, 0..1; NULL where nothing was selected.",
)
