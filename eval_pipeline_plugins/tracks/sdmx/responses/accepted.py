"""Which of several accepted targets a selection is scored against."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eval_pipeline_plugins.tracks.sdmx.metrics.macro import macro_f1
from eval_pipeline_plugins.tracks.sdmx.responses.scoring import PlaceScore, compare
from eval_pipeline_plugins.tracks.sdmx.responses.selection import Selection

if TYPE_CHECKING:
    from eval_pipeline_plugins.tracks.sdmx.case_file import SdmxGold
    from eval_pipeline_plugins.tracks.sdmx.search.retrieval import Candidates


def judged(
    gold: "SdmxGold", selected: Selection, candidates: "Candidates", said: Mapping[str, str]
) -> tuple[int, tuple[PlaceScore, ...]]:
    """Compares a selection with the accepted target that it comes closest to, the first of several.

    Closest is the target that it equals, else the one with the highest macro F1.

    Args:
        gold: the targets.
        selected: what was selected.
        candidates: what was offered.
        said: data sets that the selection writes in another way than the catalogue.

    Returns:
        The index of the target in `gold.accepted`, and the scores.
    """
    catalogue = gold.retriever.catalogue
    scored = [compare(target, selected, candidates, catalogue, (said, gold.aliases)) for target in gold.accepted]
    best = max(range(len(scored)), key=lambda index: (*_closeness(scored[index]), -index))
    return best, scored[best]


def used_target(gold: "SdmxGold", selected: Selection, candidates: "Candidates") -> Selection:
    """Returns the accepted target that a selection is scored against."""
    return gold.accepted[judged(gold, selected, candidates, {})[0] if gold.alternatives else 0]


def _closeness(places: tuple[PlaceScore, ...]) -> tuple[bool, float]:
    exact = all(term.verdict == "tp" for place in places for term in place.terms)
    return exact, macro_f1(places, answered=True)
