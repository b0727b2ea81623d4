"""What went wrong, in one word."""

from collections.abc import Sequence

from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.sdmx.metrics.data_sets import selected_data_sets, target_data_sets
from eval_pipeline.tracks.sdmx.scoring import PlaceScore

FAILURE_MODES = (
    "no_answer",
    "execution_error",
    "wrong_data_sets",
    "swapped_terms",
    "extra_dimension",
    "missing_terms",
    "extra_terms",
    "other",
)
"""In the order they are tried."""


def failure_mode(places: Sequence[PlaceScore], exact_selection: bool, no_answer: bool, failed: bool) -> str | None:
    """The first of `FAILURE_MODES` that applies; None for a right selection.

    `swapped_terms`: wherever terms are missing, as many others stand in their place. `extra_dimension`: all that is
    too much is in dimensions that the target does not ask for.
    """
    if exact_selection:
        return None
    wrong = [place for place in places if place.count("fp") or place.count("fn")]
    missing, extra = any(place.count("fn") for place in wrong), any(place.count("fp") for place in wrong)
    tried = (
        (no_answer, "no_answer"),
        (failed, "execution_error"),
        (target_data_sets(places) != selected_data_sets(places), "wrong_data_sets"),
        (missing and all(place.count("fp") == place.count("fn") for place in wrong), "swapped_terms"),
        (not missing and all(place.target != "given" for place in wrong), "extra_dimension"),
        (not extra, "missing_terms"),
        (not missing, "extra_terms"),
    )
    return next((mode for applies, mode in tried if applies), "other")


METRIC = Metric(
    "failure_mode", failure_mode, "label", "Why the selection is wrong, first that applies; NULL where it is right."
)
