"""Macro recall without redundant totals."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.metrics.macro_recall import macro_recall
from eval_pipeline.tracks.sdmx.scoring import PlaceScore, without_totals


def macro_recall_without_totals(places: Sequence[PlaceScore], answered: bool) -> float | None:
    """Returns `macro_recall`, without dimensions where one side names only totals and the other nothing."""
    return macro_recall(without_totals(places), answered)


METRIC = Metric(
    "macro_recall_without_totals",
    macro_recall_without_totals,
    "score",
    "As macro_recall, but naming a total such as _T and leaving it out are the same, 0..1; NULL as there.",
)
