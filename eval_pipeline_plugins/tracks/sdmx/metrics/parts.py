"""Scores of parts of a selection: the indicator's dimensions and the others, data sets, and with partial credit."""

from collections.abc import Sequence

from eval_pipeline_plugins.tracks.sdmx.metrics.macro import mean
from eval_pipeline_plugins.tracks.sdmx.responses.scoring import PlaceScore


def target_data_sets(places: Sequence[PlaceScore]) -> set[str]:
    """Returns the data sets for which the target names a term."""
    return {place.data_set for place in places if place.target == "given"}


def selected_data_sets(places: Sequence[PlaceScore]) -> set[str]:
    """Returns the data sets for which the selection names a term."""
    return {place.data_set for place in places if is_selected(place)}


def is_selected(place: PlaceScore) -> bool:
    """Whether the selection names a term of the dimension."""
    return bool(place.count("tp") or place.count("fp"))


def indicator_recall(places: Sequence[PlaceScore]) -> float | None:
    """Returns the mean recall over the target's (data set, dimension) pairs that make the indicator."""
    return mean(place.recall for place in places if place.indicator)


def other_recall(places: Sequence[PlaceScore]) -> float | None:
    """Returns the mean recall over the target's (data set, dimension) pairs that do not make the indicator."""
    return mean(place.recall for place in places if not place.indicator)


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


def hard_precision(places: Sequence[PlaceScore]) -> float | None:
    """Returns the share of the selected (data set, dimension) pairs without a false positive."""
    return mean(float(not place.count("fp")) for place in places if is_selected(place))


def dataset_precision(places: Sequence[PlaceScore], answered: bool) -> float:
    """Returns the share of the selected data sets that the target also has.

    It is 1 if both have none, and 0 if only the target has some.
    """
    wanted, selected = target_data_sets(places), selected_data_sets(places)
    if not selected:
        return float(answered and not wanted)
    return len(wanted & selected) / len(selected)


def dataset_recall(places: Sequence[PlaceScore], answered: bool) -> float | None:
    """Returns the share of the target's data sets that were selected.

    If the target has none, it is 1 for an answer that also selects none, and None otherwise.
    """
    wanted, selected = target_data_sets(places), selected_data_sets(places)
    if wanted:
        return len(wanted & selected) / len(wanted)
    return 1.0 if answered and not selected else None
