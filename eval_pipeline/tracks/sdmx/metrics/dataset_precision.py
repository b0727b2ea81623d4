"""Precision of the selected data sets: were only the right ones selected?"""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.metrics.data_sets import selected_data_sets, target_data_sets
from eval_pipeline.tracks.sdmx.scoring import PlaceScore


def dataset_precision(places: Sequence[PlaceScore], answered: bool) -> float:
    """Returns the share of the selected data sets that the target also has.

    It is 1 if both have none, and 0 if only the target has some.
    """
    wanted, selected = target_data_sets(places), selected_data_sets(places)
    if not selected:
        return float(answered and not wanted)
    return len(wanted & selected) / len(selected)


METRIC = Metric(
    "dataset_precision",
    dataset_precision,
    "score",
    "Selected data sets that the target has / selected ones, 0..1; 1 where both are empty; 0 where nothing was "
    "selected; NULL: not scored.",
)
