"""Macro precision without redundant totals."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.metrics.macro_precision import macro_precision
from eval_pipeline.tracks.sdmx.scoring import PlaceScore, without_totals


def macro_precision_without_totals(places: Sequence[PlaceScore], answered: bool) -> float:
    """Returns `macro_precision`, without dimensions where one side names only totals and the other nothing."""
    return macro_precision(without_totals(places), answered)


METRIC = Metric(
    "macro_precision_without_totals",
    macro_precision_without_totals,
    "score",
    "As macro_precision, but naming a total such as _T and leaving it out are the same, 0..1; NULL: not scored.",
)
