"""Precision, recall and F1 of each (data set, dimension) pair, averaged over the pairs."""

from collections.abc import Iterable, Sequence

from eval_pipeline_plugins.tracks.sdmx.responses.scoring import PlaceScore, only_if_valid, without_totals


def mean(values: Iterable[float | None]) -> float | None:
    """Returns the mean of the values that are not None, or None if there are none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def macro_precision(places: Sequence[PlaceScore], answered: bool) -> float:
    """Returns the mean precision over all (data set, dimension) pairs that target or selection use.

    If neither uses any, it is 1 for an answer and 0 without one.
    """
    found = mean(place.precision for place in places)
    return float(answered) if found is None else found


def macro_recall(places: Sequence[PlaceScore], answered: bool) -> float | None:
    """Returns the mean recall over the target's (data set, dimension) pairs.

    If the target has none, it is 1 for an answer that also selects nothing, and None otherwise.
    """
    found = mean(place.recall for place in places)
    if found is not None:
        return found
    return 1.0 if answered and not any(place.terms for place in places) else None


def macro_f1(places: Sequence[PlaceScore], answered: bool) -> float:
    """Returns the mean F1 over all (data set, dimension) pairs that target or selection use.

    If neither uses any, it is 1 for an answer and 0 without one.
    """
    found = mean(place.f1 for place in places)
    return float(answered) if found is None else found


def macro_precision_if_valid(places: Sequence[PlaceScore], answered: bool) -> float:
    """Returns `macro_precision`, with nothing selected if the catalogue lacks any part of the selection."""
    return macro_precision(only_if_valid(places, answered), answered)


def macro_recall_if_valid(places: Sequence[PlaceScore], answered: bool) -> float | None:
    """Returns `macro_recall`, with nothing selected if the catalogue lacks any part of the selection."""
    return macro_recall(only_if_valid(places, answered), answered)


def macro_f1_if_valid(places: Sequence[PlaceScore], answered: bool) -> float:
    """Returns `macro_f1`, with nothing selected if the catalogue lacks any part of the selection."""
    return macro_f1(only_if_valid(places, answered), answered)


def macro_precision_without_totals(places: Sequence[PlaceScore], answered: bool) -> float:
    """Returns `macro_precision`, without dimensions where one side names only totals and the other nothing."""
    return macro_precision(without_totals(places), answered)


def macro_recall_without_totals(places: Sequence[PlaceScore], answered: bool) -> float | None:
    """Returns `macro_recall`, without dimensions where one side names only totals and the other nothing."""
    return macro_recall(without_totals(places), answered)


def macro_f1_without_totals(places: Sequence[PlaceScore], answered: bool) -> float:
    """Returns `macro_f1`, without dimensions where one side names only totals and the other nothing."""
    return macro_f1(without_totals(places), answered)
