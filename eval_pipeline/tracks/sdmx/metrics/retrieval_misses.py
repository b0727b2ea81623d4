"""Number of missing terms that the prompt did not offer as candidates."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.scoring import PlaceScore


def retrieval_misses(places: Sequence[PlaceScore]) -> int:
    """Counts false negatives that were not offered as candidates."""
    return sum(term.verdict == "fn" and not term.retrieved for place in places for term in place.terms)


METRIC = Metric(
    "retrieval_misses",
    retrieval_misses,
    "count",
    "False negatives that were not offered as candidates, from 0; NULL: not scored.",
)
