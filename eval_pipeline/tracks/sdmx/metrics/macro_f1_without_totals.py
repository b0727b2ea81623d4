"""Macro F1 without redundant totals."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.metrics.macro_f1 import macro_f1
from eval_pipeline.tracks.sdmx.scoring import PlaceScore, without_totals


def macro_f1_without_totals(places: Sequence[PlaceScore], answered: bool) -> float:
    """Returns `macro_f1`, without dimensions where one side names only totals and the other nothing."""
    return macro_f1(without_totals(places), answered)


METRIC = Metric(
    "macro_f1_without_totals",
    macro_f1_without_totals,
    "score",
    "As macro_f1, but naming a total such as _T and leaving it out are the same, 0..1; NULL: not scored.",
)
