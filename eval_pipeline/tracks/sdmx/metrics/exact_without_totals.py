"""Whether the selection equals the target apart from redundant totals."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.scoring import PlaceScore, without_totals


def exact_without_totals(places: Sequence[PlaceScore], answered: bool) -> bool:
    """Returns whether there is an answer without missing and extra terms, redundant totals aside."""
    return answered and all(term.verdict == "tp" for place in without_totals(places) for term in place.terms)


METRIC = Metric(
    "exact_without_totals",
    exact_without_totals,
    "boolean",
    "As exact_selection, but naming a total such as _T and leaving the dimension out are the same; NULL: not scored.",
)
