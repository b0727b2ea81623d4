"""The validator: what can be known about a selection before it runs."""

from eval_pipeline.core.model import Json
from eval_pipeline.tracks.base import ArtefactError, ValidationRow
from eval_pipeline.tracks.sdmx.catalogue.catalogue import Catalogue
from eval_pipeline.tracks.sdmx.execute import misnamed, resolved, selection_problems
from eval_pipeline.tracks.sdmx.selection import NOTHING, Selection


def validate_selection(selection: Selection | None, error: ArtefactError | None, catalogue: Catalogue) -> ValidationRow:
    """Returns a verdict on a selection before it runs.

    `invalid` means that something is not in the catalogue. `suspicious` means that a term has a name that the catalogue
    does not give it.
    """
    if selection is None:
        message = "there is no response" if error is None else error.message
        return ValidationRow(False, "invalid", _checks(NOTHING, 0, []), (message,))
    selection = resolved(selection, catalogue)
    problems = list(selection_problems(selection, catalogue))
    strange = [f"{id}: {name}" for _, (id, name) in misnamed(selection, catalogue)]
    checks = _checks(selection, len(problems), strange)
    if problems:
        return ValidationRow(True, "invalid", checks, tuple(problems))
    sentences = tuple(f"the catalogue has no name '{text:.120}'" for text in strange)
    return ValidationRow(True, "suspicious" if strange else "valid", checks, sentences)


def _checks(selection: Selection, unknown: int, strange: list[str]) -> dict[str, Json]:
    return {
        "data_sets": len(selection.data_sets),
        "terms": selection.terms,
        "not_in_catalogue": unknown,
        "other_names": strange,
    }
