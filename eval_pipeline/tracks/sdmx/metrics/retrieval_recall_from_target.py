"""Retrieval recall of terms that are only known from a target.

They are counted separately because their dimensions hold few other terms, which makes them easy to find.
"""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.metrics.retrieval_recall import offered
from eval_pipeline.tracks.sdmx.scoring import PlaceScore


def retrieval_recall_from_target(places: Sequence[PlaceScore]) -> float | None:
    """Same as `retrieval_recall`, but for terms that are not in the supplied structures."""
    return offered(places, from_target=True)


METRIC = Metric(
    "retrieval_recall_from_target",
    retrieval_recall_from_target,
    "score",
    "As retrieval_recall, over target terms that the structures lack and the importer added, 0..1; NULL without any.",
)
