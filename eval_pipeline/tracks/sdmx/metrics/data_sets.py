"""Which data sets a target and a selection use: those with at least one term."""

from collections.abc import Sequence

from eval_pipeline.tracks.sdmx.scoring import PlaceScore


def target_data_sets(places: Sequence[PlaceScore]) -> set[str]:
    """Returns the data sets for which the target names a term."""
    return {place.data_set for place in places if place.target == "given"}


def selected_data_sets(places: Sequence[PlaceScore]) -> set[str]:
    """Returns the data sets for which the selection names a term."""
    return {place.data_set for place in places if is_selected(place)}


def is_selected(place: PlaceScore) -> bool:
    """Whether the selection names a term of the dimension."""
    return bool(place.count("tp") or place.count("fp"))
