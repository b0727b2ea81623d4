"""Whether the right data sets were selected: none too many."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.metrics.data_sets import selected_data_sets, target_data_sets
from eval_pipeline.tracks.sdmx.scoring import PlaceScore


def dataset_precision(places: Sequence[PlaceScore], answered: bool) -> float:
    """Share of the selected data sets that the target has; 1 where both are empty, 0 where only the selection is."""
    wanted, selected = target_data_sets(places), selected_data_sets(places)
    if not selected:
        return float(answered and not wanted)
    return len(wanted & selected) / len(selected)


METRIC = Metric(
    "dataset_precision",
    dataset_precision,
    "score",
    "Selected data sets that the target has / selected ones, 0..1; 1 where both are empty; 0 where nothing was "
    "selected; never NULL.",
)
