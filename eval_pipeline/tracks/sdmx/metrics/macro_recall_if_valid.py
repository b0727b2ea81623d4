"""Macro recall of valid selections; a selection that is invalid in any part counts as empty."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.metrics.macro_recall import macro_recall
from eval_pipeline.tracks.sdmx.scoring import PlaceScore, only_if_valid


def macro_recall_if_valid(places: Sequence[PlaceScore], answered: bool) -> float | None:
    """Returns `macro_recall`, with nothing selected if the catalogue lacks any part of the selection."""
    return macro_recall(only_if_valid(places, answered), answered)


METRIC = Metric(
    "macro_recall_if_valid",
    macro_recall_if_valid,
    "score",
    "As macro_recall, but a selection with anything unknown selects nothing, 0..1; NULL as there.",
)
