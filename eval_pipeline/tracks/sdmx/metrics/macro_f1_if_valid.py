"""Macro F1 of valid selections; a selection that is invalid in any part counts as empty."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.metrics.macro_f1 import macro_f1
from eval_pipeline.tracks.sdmx.scoring import PlaceScore, only_if_valid


def macro_f1_if_valid(places: Sequence[PlaceScore], answered: bool) -> float:
    """Returns `macro_f1`, with nothing selected if the catalogue lacks any part of the selection."""
    return macro_f1(only_if_valid(places, answered), answered)


METRIC = Metric(
    "macro_f1_if_valid",
    macro_f1_if_valid,
    "score",
    "As macro_f1, but a selection with anything unknown selects nothing, 0..1; NULL as there.",
)
