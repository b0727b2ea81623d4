"""How many of the right terms retrieval offered; the model can only select from those."""

from collections.abc import Sequence

from eval_pipeline_plugins.tracks.sdmx.responses.scoring import PlaceScore


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


def retrieval_recall_from_target(places: Sequence[PlaceScore]) -> float | None:
    """Same as `retrieval_recall`, but for terms that are not in the supplied structures."""
    return offered(places, from_target=True)
