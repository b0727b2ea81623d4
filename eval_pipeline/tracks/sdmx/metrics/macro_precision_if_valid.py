"""Macro precision of valid selections; a selection that is invalid in any part counts as empty."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.metrics.macro_precision import macro_precision
from eval_pipeline.tracks.sdmx.scoring import PlaceScore, only_if_valid


def macro_precision_if_valid(places: Sequence[PlaceScore], answered: bool) -> float:
    """Returns `macro_precision`, with nothing selected if the catalogue lacks any part of the selection."""
    return macro_precision(only_if_valid(places, answered), answered)


METRIC = Metric(
    "macro_precision_if_valid",
    macro_precision_if_valid,
    "score",
    "As macro_precision, but a selection with anything unknown selects nothing, 0..1; NULL as there.",
)
