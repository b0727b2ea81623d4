"""Running a selection: every data set, dimension and code has to be in the catalogue."""

from collections.abc import Iterator

from eval_pipeline.core.model import ErrorClass, Failed, Outcome, Ran
from eval_pipeline.tracks.sdmx.catalogue.catalogue import Catalogue
from eval_pipeline.tracks.sdmx.selection import Pair, Place, Selection, merged, selection_json

_MOST_TOLD = 5


def run_selection(selection: Selection, catalogue: Catalogue) -> Outcome:
    """The selection with the names it left out, or why it cannot run.

    A name that is not the catalogue's runs: it makes another term, which is then scored as wrong.
    """
    problems = list(selection_problems(selection, catalogue))
    if problems:
        told = "; ".join(problems[:_MOST_TOLD])
        more = f"; and {len(problems) - _MOST_TOLD} more" if len(problems) > _MOST_TOLD else ""
        return Failed(ErrorClass.VALUE, told + more)
    return Ran(selection_json(_named(selection, catalogue)))


def selection_problems(selection: Selection, catalogue: Catalogue) -> Iterator[str]:
    """A sentence for each data set, dimension and code that the catalogue lacks."""
    told: set[str] = set()
    for (data_set, dimension), terms in selection.places.items():
        problem = catalogue.data_set_problem(data_set) or catalogue.dimension_problem(data_set, dimension)
        problems = [problem] if problem else [catalogue.term_problem(data_set, dimension, id) for id, _ in terms]
        for found in problems:
            if found is not None and found not in told:
                told.add(found)
                yield found


def misnamed(selection: Selection, catalogue: Catalogue) -> Iterator[tuple[Place, Pair]]:
    """Terms whose name is not one that the catalogue gives their id."""
    for place, terms in selection.places.items():
        for id, name in terms:
            known = catalogue.find(*place, id)
            if name and known and name not in {term.name for term in known}:
                yield place, (id, name)


def _named(selection: Selection, catalogue: Catalogue) -> Selection:
    return merged(
        (place, [(id, name or catalogue.find(*place, id)[0].name) for id, name in terms])
        for place, terms in selection.places.items()
    )
