"""Macro F1: combines precision and recall of each dimension."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.metrics.means import mean
from eval_pipeline.tracks.sdmx.scoring import PlaceScore


def macro_f1(places: Sequence[PlaceScore], answered: bool) -> float:
    """Returns the mean F1 over all (data set, dimension) pairs that target or selection use.

    If neither uses any, it is 1 for an answer and 0 without one.
    """
    found = mean(place.f1 for place in places)
    return float(answered) if found is None else found


METRIC = Metric(
    "macro_f1",
    macro_f1,
    "score",
    "Mean over (data set, dimension) pairs of target or selection of 2 tp / (2 tp + fp + fn), 0..1; 1 where both are "
    "empty; 0 without an answer; NULL: not scored.",
)
