"""Whether retrieval offered what was to be selected: beyond that no model can select right."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.scoring import PlaceScore


def retrieval_recall(places: Sequence[PlaceScore]) -> float | None:
    """Share of the target's terms, of those that the structures hold, that were among the candidates."""
    return offered(places, from_target=False)


def offered(places: Sequence[PlaceScore], *, from_target: bool) -> float | None:
    """The same for terms that the structures hold, or for those that only a target names."""
    wanted = [
        term.retrieved
        for place in places
        for term in place.terms
        if term.verdict != "fp" and term.from_target == from_target
    ]
    return sum(wanted) / len(wanted) if wanted else None


METRIC = Metric(
    "retrieval_recall",
    retrieval_recall,
    "score",
    "Terms of the target that were offered as candidates / all of the target that the structures hold, 0..1; "
    "NULL where there are none.",
)
