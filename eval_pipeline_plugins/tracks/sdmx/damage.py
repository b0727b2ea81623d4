"""Makes responses that are wrong in a given way by changing the target (for the simulated provider).

Every response is scored before it is returned, so the metrics are certain to report the failure mode that was asked
for.
"""

import json
from collections.abc import Callable, Iterator
from random import Random

from eval_pipeline.core.model import Ran
from eval_pipeline.tracks.base import ArtefactError
from eval_pipeline_plugins.tracks.sdmx.case_file import SdmxGold
from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import Dimension
from eval_pipeline_plugins.tracks.sdmx.metrics.failure_mode import failure_mode
from eval_pipeline_plugins.tracks.sdmx.responses.accepted import judged
from eval_pipeline_plugins.tracks.sdmx.responses.artefact import parse_selection
from eval_pipeline_plugins.tracks.sdmx.responses.execute import run_selection
from eval_pipeline_plugins.tracks.sdmx.responses.selection import (
    Pair,
    Place,
    Selection,
    selection_from_json,
    selection_json,
)
from eval_pipeline_plugins.tracks.sdmx.search.retrieval import Candidates

Places = dict[Place, tuple[Pair, ...]]

_NEAR = 8
"""How many similarly named terms a wrong one is drawn from."""


def selection_response(selection: Selection) -> str:
    """Returns a selection as a model would write it."""
    return json.dumps(selection_json(selection), ensure_ascii=False)


def damaged_response(gold: SdmxGold, mode: str, rng: Random) -> str | None:
    """Returns a response with the given `failure_mode`, or None if this target cannot fail in that way.

    Raises:
        ValueError: the mode is not in `FAILURE_MODES`.
    """
    if mode not in _CANDIDATES:
        raise ValueError(f"unknown failure mode '{mode}'; known: {', '.join(_CANDIDATES)}")
    candidates = (text for text in _CANDIDATES[mode](gold, rng) if _mode_of(text, gold) == mode)
    return next(candidates, None)


def _mode_of(text: str, gold: SdmxGold) -> str | None:
    """Returns the failure mode that the metrics give to a response."""
    catalogue = gold.retriever.catalogue
    try:
        outcome = run_selection(parse_selection(text), catalogue)
    except ArtefactError:
        return "execution_error" if text.strip() else "no_answer"
    if not isinstance(outcome, Ran):
        return "execution_error"
    _, places = judged(gold, selection_from_json(outcome.value), Candidates({}, ()), {})
    exact = all(term.verdict == "tp" for place in places for term in place.terms)
    return failure_mode(places, exact, no_answer=False, failed=False)


def _no_answer(gold: SdmxGold, rng: Random) -> Iterator[str]:
    yield ""


def _execution_error(gold: SdmxGold, rng: Random) -> Iterator[str]:
    ways: tuple[Callable[[], str], ...] = (
        lambda: selection_response(gold.target)[:-2],
        lambda: selection_response(gold.target).replace('": ', '" ', 1),
        lambda: _unknown_code(gold, rng),
        lambda: selection_response(Selection({("UNKNOWN:DATA", "COUNTRY"): (("USA", "United States"),)})),
    )
    for way in rng.sample(ways, len(ways)):
        yield way()


def _unknown_code(gold: SdmxGold, rng: Random) -> str:
    place = _drawn(gold, rng)[0]
    pair = (f"NO_SUCH_{rng.randint(100, 999)}", "a code that is not there")
    return selection_response(Selection({**gold.target.places, place: (pair,)}))


def _wrong_data_sets(gold: SdmxGold, rng: Random) -> Iterator[str]:
    """Yields responses that leave out one data set or add one."""
    held = gold.target.data_sets
    if len(held) > 1:
        left_out = rng.choice(held)
        yield _said({place: terms for place, terms in gold.target.places.items() if place[0] != left_out})
    others = [found for found in gold.retriever.catalogue.data_sets.values() if found.id not in held]
    for data_set in rng.sample(others, len(others)):
        for dimension in data_set.dimensions.values():
            if dimension.codes.terms:
                term = rng.choice(dimension.codes.terms)
                yield _said({**gold.target.places, (data_set.id, dimension.id): (term.pair,)})
    yield _said({})


def _wrong_names(gold: SdmxGold, rng: Random) -> Iterator[str]:
    """Yields responses with one term under a name that the catalogue does not have."""
    for place in _filled(gold, rng):
        terms = gold.target.places[place]
        index = rng.randrange(len(terms))
        id, name = terms[index]
        yield _said({**gold.target.places, place: (*terms[:index], (id, f"{name} series"), *terms[index + 1 :])})


def _no_data(gold: SdmxGold, rng: Random) -> Iterator[str]:
    """Yields responses with one more term, a code that a constraint says has no data."""
    for data_set in map(gold.retriever.catalogue.data_sets.__getitem__, gold.target.data_sets):
        for id, with_data in data_set.available.items():
            without = [term.pair for term in data_set.dimensions[id].codes.terms if term.id not in with_data]
            place = (data_set.id, id)
            if without:
                yield _said({**gold.target.places, place: (*gold.target.places.get(place, ()), rng.choice(without))})


def _swapped_terms(gold: SdmxGold, rng: Random) -> Iterator[str]:
    """Yields responses in which one term is replaced by another with a similar name."""
    for place in _filled(gold, rng):
        terms = gold.target.places[place]
        index = rng.randrange(len(terms))
        for other in _near(gold, place, terms[index], rng):
            yield _said({**gold.target.places, place: (*terms[:index], other, *terms[index + 1 :])})


def _missing_terms(gold: SdmxGold, rng: Random) -> Iterator[str]:
    """Yields responses with one term left out, first from dimensions that keep other terms."""
    ordered = sorted(_filled(gold, rng), key=lambda place: len(gold.target.places[place]) < 2)
    for place in ordered:
        terms = gold.target.places[place]
        index = rng.randrange(len(terms))
        yield _said({**gold.target.places, place: (*terms[:index], *terms[index + 1 :])})


def _extra_dimension(gold: SdmxGold, rng: Random) -> Iterator[str]:
    """Yields responses that add a term in a dimension that the target does not use."""
    for data_set in gold.target.data_sets:
        for dimension in gold.retriever.catalogue.data_sets[data_set].dimensions.values():
            place = (data_set, dimension.id)
            if not gold.target.places.get(place) and dimension.codes.terms:
                yield _said({**gold.target.places, place: (rng.choice(dimension.codes.terms).pair,)})


def _extra_terms(gold: SdmxGold, rng: Random) -> Iterator[str]:
    """Yields responses that add one wrong term to the right ones."""
    for place in _filled(gold, rng):
        terms = gold.target.places[place]
        for other in _near(gold, place, rng.choice(terms), rng):
            yield _said({**gold.target.places, place: (*terms, other)})


def all_terms(gold: SdmxGold) -> str | None:
    """Returns a response with all terms of the target's dimensions; None if these are no more than the target's."""
    data_sets, target = gold.retriever.catalogue.data_sets, gold.target.places
    found = {
        place: tuple(term.pair for term in data_sets[place[0]].dimensions[place[1]].codes.terms) for place in target
    }
    return _said(found) if any(len(found[place]) > len(terms) for place, terms in target.items()) else None


def _other(gold: SdmxGold, rng: Random) -> Iterator[str]:
    """Yields responses with several faults.

    Either one term is swapped and another added, or one is left out and a dimension added.
    """
    for place in _filled(gold, rng):
        terms = gold.target.places[place]
        near = list(_near(gold, place, terms[0], rng))
        if len(near) > 1:
            yield _said({**gold.target.places, place: (*near[:2], *terms[1:])})


_CANDIDATES: dict[str, Callable[[SdmxGold, Random], Iterator[str]]] = {
    "no_answer": _no_answer,
    "execution_error": _execution_error,
    "wrong_data_sets": _wrong_data_sets,
    "wrong_names": _wrong_names,
    "no_data": _no_data,
    "swapped_terms": _swapped_terms,
    "extra_dimension": _extra_dimension,
    "missing_terms": _missing_terms,
    "extra_terms": _extra_terms,
    "other": _other,
}


def _said(places: Places) -> str:
    return selection_response(Selection({place: terms for place, terms in places.items() if terms}))


def _filled(gold: SdmxGold, rng: Random) -> list[Place]:
    """Returns the places of the target that have terms, in random order."""
    places = [place for place, terms in gold.target.places.items() if terms]
    return rng.sample(places, len(places))


def _drawn(gold: SdmxGold, rng: Random) -> tuple[Place, Dimension]:
    """Returns a random place of the target that has terms, or any place of the catalogue if there is none."""
    filled = _filled(gold, rng)
    if filled:
        data_set, dimension = filled[0]
        return filled[0], gold.retriever.catalogue.data_sets[data_set].dimensions[dimension]
    pairs = list(gold.retriever.catalogue.pairs())
    found, drawn = rng.choice(pairs)
    return (found.id, drawn.id), drawn


def _near(gold: SdmxGold, place: Place, pair: Pair, rng: Random) -> Iterator[Pair]:
    """Yields terms that are not in the target, those with the most similar names first."""
    codes = gold.retriever.catalogue.data_sets[place[0]].dimensions[place[1]].codes
    taken = set(gold.target.places[place])
    alike = [term.pair for term in gold.retriever.alike(codes, pair[1], _NEAR) if term.pair not in taken]
    yield from rng.sample(alike, len(alike))
    rest = [term.pair for term in codes.terms if term.pair not in taken and term.pair not in alike]
    yield from rng.sample(rest, min(len(rest), _NEAR))
