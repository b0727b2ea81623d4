"""How many of the right terms retrieval offered; the model can only select from those."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.scoring import PlaceScore


def retrieval_recall(places: Sequence[PlaceScore]) -> float | None:
    """Returns the share of the target's terms that were offered, among terms that the structures contain."""
    return offered(places, from_target=False)


def offered(places: Sequence[PlaceScore], *, from_target: bool) -> float | None:
    """Computes the same share, either for terms in the structures or for terms that are only known from a target."""
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
