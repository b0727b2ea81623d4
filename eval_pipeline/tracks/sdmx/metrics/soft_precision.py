"""Soft precision: selected terms earn part of the credit, dimensions beyond the target are no fault."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.metrics.data_sets import is_selected, target_data_sets
from eval_pipeline.tracks.sdmx.metrics.means import mean
from eval_pipeline.tracks.sdmx.scoring import PlaceScore


def soft_precision(places: Sequence[PlaceScore]) -> float | None:
    """Returns the mean precision over the selected (data set, dimension) pairs.

    Pairs that the target does not use are left out if it uses their data set; in other data sets they count as 0.
    """
    known = target_data_sets(places)
    return mean(
        place.precision
        for place in places
        if is_selected(place) and (place.target == "given" or place.data_set not in known)
    )


METRIC = Metric(
    "soft_precision",
    soft_precision,
    "score",
    "Mean of tp / (tp + fp) over the selected pairs, without dimensions beyond the target in its data sets, 0..1; "
    "NULL where nothing is left.",
)
