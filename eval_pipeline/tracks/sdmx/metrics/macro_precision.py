"""Macro precision: how much of what was selected is right."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.metrics.means import mean
from eval_pipeline.tracks.sdmx.scoring import PlaceScore


def macro_precision(places: Sequence[PlaceScore], answered: bool) -> float:
    """Returns the mean precision over all (data set, dimension) pairs that target or selection use.

    If neither uses any, it is 1 for an answer and 0 without one.
    """
    found = mean(place.precision for place in places)
    return float(answered) if found is None else found


METRIC = Metric(
    "macro_precision",
    macro_precision,
    "score",
    "Mean over (data set, dimension) pairs of target or selection of tp / (tp + fp), 0..1; 1 where both are empty; "
    "0 without an answer; NULL: not scored.",
)
