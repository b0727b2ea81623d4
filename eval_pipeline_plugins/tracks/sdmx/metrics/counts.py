"""Counts of terms (right, extra, missing, not offered), what follows from them alone, and what retrieval offered."""

from collections.abc import Sequence

from eval_pipeline_plugins.tracks.sdmx.responses.scoring import PlaceScore, without_totals


def true_positives(places: Sequence[PlaceScore]) -> int:
    """Counts terms that are in the target and were selected, over all data sets and dimensions."""
    return sum(place.count("tp") for place in places)


def false_positives(places: Sequence[PlaceScore]) -> int:
    """Counts terms that were selected but are not in the target, over all data sets and dimensions."""
    return sum(place.count("fp") for place in places)


def false_negatives(places: Sequence[PlaceScore]) -> int:
    """Counts terms that are in the target but were not selected, over all data sets and dimensions."""
    return sum(place.count("fn") for place in places)


def retrieval_misses(places: Sequence[PlaceScore]) -> int:
    """Counts false negatives that were not offered as candidates."""
    return sum(term.verdict == "fn" and not term.retrieved for place in places for term in place.terms)


def selection_misses(places: Sequence[PlaceScore]) -> int:
    """Counts false negatives that were offered as candidates."""
    return sum(term.verdict == "fn" and term.retrieved for place in places for term in place.terms)


def exact_selection(false_positives: int, false_negatives: int, answered: bool) -> bool:
    """Returns whether there is an answer in which no term is missing and no term is extra."""
    return answered and not false_positives and not false_negatives


def exact_without_totals(places: Sequence[PlaceScore], answered: bool) -> bool:
    """Returns whether there is an answer without missing and extra terms, redundant totals aside."""
    return answered and all(term.verdict == "tp" for place in without_totals(places) for term in place.terms)


def valid_selection(answered: bool) -> bool:
    """Returns whether the final attempt could be read and names only data sets, dimensions and codes that exist."""
    return answered


def retrieval_recall(places: Sequence[PlaceScore]) -> float | None:
    """Returns the share of the target's terms that were offered, among terms that the structures contain."""
    return offered(places, from_target=False)


def offered(places: Sequence[PlaceScore], *, from_target: bool) -> float | None:
    """Computes the same share, either for terms in the structures or for terms that are only known from a target."""
    wanted = [
        term.retrieved
        for place in places
        for term in place.terms
        if term.verdict != "fp" and term.from_target == from_target
    ]
    return sum(wanted) / len(wanted) if wanted else None


def retrieval_recall_from_target(places: Sequence[PlaceScore]) -> float | None:
    """Same as `retrieval_recall`, but for terms that are not in the supplied structures."""
    return offered(places, from_target=True)
