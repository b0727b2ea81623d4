"""Recall of the selected data sets: were all the right ones selected?"""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.metrics.data_sets import selected_data_sets, target_data_sets
from eval_pipeline.tracks.sdmx.scoring import PlaceScore


def dataset_recall(places: Sequence[PlaceScore], answered: bool) -> float | None:
    """Returns the share of the target's data sets that were selected.

    If the target has none, it is 1 for an answer that also selects none, and None otherwise.
    """
    wanted, selected = target_data_sets(places), selected_data_sets(places)
    if wanted:
        return len(wanted & selected) / len(wanted)
    return 1.0 if answered and not selected else None


METRIC = Metric(
    "dataset_recall",
    dataset_recall,
    "score",
    "Data sets of the target that were selected / those of the target, 0..1; 1 where target and selection are empty; "
    "NULL where only the target is, or where nothing answers an empty one.",
)
