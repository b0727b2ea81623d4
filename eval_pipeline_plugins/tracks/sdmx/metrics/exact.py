"""Whether a selection is right or valid as a whole."""

from collections.abc import Sequence

from eval_pipeline_plugins.tracks.sdmx.responses.scoring import PlaceScore, without_totals


def exact_selection(false_positives: int, false_negatives: int, answered: bool) -> bool:
    """Returns whether there is an answer in which no term is missing and no term is extra."""
    return answered and not false_positives and not false_negatives


def exact_without_totals(places: Sequence[PlaceScore], answered: bool) -> bool:
    """Returns whether there is an answer without missing and extra terms, redundant totals aside."""
    return answered and all(term.verdict == "tp" for place in without_totals(places) for term in place.terms)


def valid_selection(answered: bool) -> bool:
    """Returns whether the final attempt could be read and names only data sets, dimensions and codes that exist."""
    return answered
