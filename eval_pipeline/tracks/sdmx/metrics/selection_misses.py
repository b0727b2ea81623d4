"""Number of missing terms that were offered as candidates but not selected."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.scoring import PlaceScore


def selection_misses(places: Sequence[PlaceScore]) -> int:
    """Counts false negatives that were offered as candidates."""
    return sum(term.verdict == "fn" and term.retrieved for place in places for term in place.terms)


METRIC = Metric(
    "selection_misses",
    selection_misses,
    "count",
    "False negatives that were offered and not selected, from 0; NULL: not scored.",
)
