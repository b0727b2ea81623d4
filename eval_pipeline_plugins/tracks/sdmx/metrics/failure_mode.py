"""The reason why a selection is wrong, as one word."""

from collections.abc import Sequence

from eval_pipeline_plugins.tracks.sdmx.metrics.parts import selected_data_sets, target_data_sets
from eval_pipeline_plugins.tracks.sdmx.responses.scoring import PlaceScore


def failure_mode(places: Sequence[PlaceScore], exact_selection: bool, no_answer: bool, failed: bool) -> str | None:
    """Returns the first of `FAILURE_MODES` that applies, or None if the selection is right.

    `execution_error` means that no selection could be read, or that the catalogue lacks part of it. `wrong_names` means
    that the right ids were selected, some under names that the catalogue does not give them. `no_data` means that an
    extra term is a code that has no data, as a constraint says. `swapped_terms` means that wherever terms are missing,
    as many others were selected instead. `extra_dimension` means that all extra terms are in dimensions that the target
    does not use.
    """
    if exact_selection:
        return None
    wrong = [place for place in places if place.count("fp") or place.count("fn")]
    missing, extra = any(place.count("fn") for place in wrong), any(place.count("fp") for place in wrong)
    tried = (
        (no_answer, "no_answer"),
        (failed, "execution_error"),
        (target_data_sets(places) != selected_data_sets(places), "wrong_data_sets"),
        (missing and all(map(_same_ids, wrong)), "wrong_names"),
        (any(term.verdict == "fp" and term.doubt == "no_data" for place in wrong for term in place.terms), "no_data"),
        (missing and all(place.count("fp") == place.count("fn") for place in wrong), "swapped_terms"),
        (not missing and all(place.target != "given" for place in wrong), "extra_dimension"),
        (not extra, "missing_terms"),
        (not missing, "extra_terms"),
    )
    return next((mode for applies, mode in tried if applies), "other")


def _same_ids(place: PlaceScore) -> bool:
    """Whether the missing and the extra terms of a place differ by name alone."""
    ids = {verdict: {term.id for term in place.terms if term.verdict == verdict} for verdict in ("fp", "fn")}
    renamed = all(term.doubt == "other_name" for term in place.terms if term.verdict == "fp")
    return ids["fp"] == ids["fn"] and renamed
