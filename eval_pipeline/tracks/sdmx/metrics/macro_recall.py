"""Macro recall: how much of what was asked for was selected."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.metrics.means import mean
from eval_pipeline.tracks.sdmx.scoring import PlaceScore


def macro_recall(places: Sequence[PlaceScore], answered: bool) -> float | None:
    """Returns the mean recall over the target's (data set, dimension) pairs.

    If the target has none, it is 1 for an answer that also selects nothing, and None otherwise.
    """
    found = mean(place.recall for place in places)
    if found is not None:
        return found
    return 1.0 if answered and not any(place.terms for place in places) else None


METRIC = Metric(
    "macro_recall",
    macro_recall,
    "score",
    "Mean over the target's (data set, dimension) pairs of tp / (tp + fn), 0..1; 1 where target and selection are "
    "empty; NULL where only the target is, or where nothing answers an empty one.",
)
