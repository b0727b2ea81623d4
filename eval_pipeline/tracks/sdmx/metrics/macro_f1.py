"""Precision and recall in one."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.metrics.means import mean
from eval_pipeline.tracks.sdmx.scoring import PlaceScore


def macro_f1(places: Sequence[PlaceScore], answered: bool) -> float:
    """Mean F1 over the pairs of target or selection; 1 where both are empty, 0 for no answer at all."""
    found = mean(place.f1 for place in places)
    return float(answered) if found is None else found


METRIC = Metric(
    "macro_f1",
    macro_f1,
    "score",
    "Mean over (data set, dimension) pairs of target or selection of 2 tp / (2 tp + fp + fn), 0..1; 1 where both are "
    "empty; 0 without an answer; never NULL.",
)
