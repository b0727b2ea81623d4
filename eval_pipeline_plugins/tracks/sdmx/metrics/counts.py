"""Counts of terms: right, extra, missing, and among the missing those that were not offered."""

from collections.abc import Sequence

from eval_pipeline_plugins.tracks.sdmx.responses.scoring import PlaceScore


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
