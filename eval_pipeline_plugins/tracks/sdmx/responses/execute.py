"""Runs a selection: checks that every data set, dimension and code is in the catalogue."""

from collections.abc import Iterator

from eval_pipeline.core.model import ErrorClass, Failed, Json, Outcome, Ran
from eval_pipeline.tracks.base import ArtefactError, ValidationRow
from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import Catalogue
from eval_pipeline_plugins.tracks.sdmx.responses.selection import (
    NOTHING,
    Pair,
    Place,
    Selection,
    merged,
    selection_json,
)

_MOST_TOLD = 5


def run_selection(selection: Selection, catalogue: Catalogue) -> Outcome:
    """Returns the selection with ids of data sets resolved and names filled in, or the reason why it cannot run.

    A term whose name differs from the catalogue's still runs; it counts as a different term and is then scored as
    wrong.
    """
    problems = list(selection_problems(resolved(selection, catalogue), catalogue))
    if problems:
        told = "; ".join(problems[:_MOST_TOLD])
        more = f"; and {len(problems) - _MOST_TOLD} more" if len(problems) > _MOST_TOLD else ""
        return Failed(ErrorClass.VALUE, told + more)
    return Ran(selection_json(named(selection, catalogue)))


def selection_problems(selection: Selection, catalogue: Catalogue) -> Iterator[str]:
    """Yields a sentence for each data set, dimension and code of a resolved selection that the catalogue lacks."""
    told: set[str] = set()
    for (data_set, dimension), terms in selection.places.items():
        problem = catalogue.data_set_problem(data_set) or catalogue.dimension_problem(data_set, dimension)
        problems = [problem] if problem else [catalogue.term_problem(data_set, dimension, id) for id, _ in terms]
        for found in problems:
            if found is not None and found not in told:
                told.add(found)
                yield found


def misnamed(selection: Selection, catalogue: Catalogue) -> Iterator[tuple[Place, Pair]]:
    """Yields the terms whose name is not the one that the catalogue gives for their id."""
    for place, terms in selection.places.items():
        for id, name in terms:
            known = catalogue.find(*place, id)
            if name and known and name not in {term.name for term in known}:
                yield place, (id, name)


def resolved(selection: Selection, catalogue: Catalogue) -> Selection:
    """Returns the selection with the catalogue's own ids of data sets; see `Catalogue.meant`."""
    return merged(
        ((catalogue.meant(data_set), dimension), terms) for (data_set, dimension), terms in selection.places.items()
    )


def named(selection: Selection, catalogue: Catalogue) -> Selection:
    """Returns the selection resolved and with missing names from the catalogue; an unknown id stays without a name."""
    return merged(
        (place, [(id, name or _name(place, id, catalogue)) for id, name in terms])
        for place, terms in resolved(selection, catalogue).places.items()
    )


def aliases(selection: Selection, catalogue: Catalogue) -> dict[str, str]:
    """Returns the data sets that the selection names by another id than the catalogue's: the latter → the former."""
    used = dict.fromkeys(data_set for data_set, _ in selection.places)
    return {meant: asked for asked in used if (meant := catalogue.meant(asked)) != asked}


def _name(place: Place, id: str, catalogue: Catalogue) -> str:
    known = catalogue.find(*place, id)
    return known[0].name if known else ""


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
