"""Finds candidate terms for a request.

Each dimension's terms are ranked by an `Index`; countries that the request names come first.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import Catalogue, CodeList, DataSet, Dimension, Term
from eval_pipeline_plugins.tracks.sdmx.catalogue.countries import adjectives_of, countries_in, country_of, is_geographic
from eval_pipeline_plugins.tracks.sdmx.catalogue.everyday import said_otherwise
from eval_pipeline_plugins.tracks.sdmx.responses.selection import Pair, Place
from eval_pipeline_plugins.tracks.sdmx.search.index import Index
from eval_pipeline_plugins.tracks.sdmx.search.words import Words, words

if TYPE_CHECKING:
    from eval_pipeline_plugins.tracks.sdmx.search.given import GivenCandidates

_REMEMBERED = 512
"""How many requests have their candidates cached: the prompt and the scoring of a turn need the same ones."""


DEEPEST = 300
"""Down to which rank the search is measured, beyond what is offered."""
_PHRASE = re.compile(r"[,;:.!?()\n]| and ")
_MOST_PHRASES = 16
_MOST_ADJECTIVES = 4
"""A request with more countries means a group, and no country's currency or the like."""


@dataclass(frozen=True)
class Candidates:
    """The terms and data sets that the prompt offers for a request.

    Attributes:
        places: for each (data set, dimension) its candidate terms, best first; small dimensions have all their terms,
            in list order.
        data_sets: the data sets that are shown, best first.
        ranks: for each place whose terms were searched, because there are too many, the rank of each term that was
            found, from 1: how many candidates have to be offered so that it is one of them. Down to `DEEPEST`.
    """

    places: Mapping[Place, tuple[Term, ...]]
    data_sets: tuple[str, ...]
    ranks: Mapping[Place, Mapping[Pair, int]] = field(default_factory=dict)

    @cached_property
    def _pairs(self) -> Mapping[Place, frozenset[tuple[str, str]]]:
        return {place: frozenset(term.pair for term in terms) for place, terms in self.places.items()}

    def offers(self, place: Place, pair: tuple[str, str]) -> bool:
        """Returns whether the term was among the candidates."""
        return pair in self._pairs.get(place, frozenset())


class Retriever:
    """Finds candidates in a catalogue; the index of a code list is built when it is first needed."""

    def __init__(
        self, catalogue: Catalogue, most: int, most_data_sets: int, given: "GivenCandidates | None" = None
    ) -> None:
        """Takes the catalogue, and the maximum numbers of candidates per dimension and of data sets per request.

        `given` has the candidates of the suite's own file, if there is one; `candidates` does not use them.
        """
        self.catalogue, self.most, self.most_data_sets = catalogue, most, most_data_sets
        self.given: GivenCandidates | None = given
        self._indexes: dict[str, Index] = {}
        self._countries: dict[str, Mapping[str, tuple[Term, ...]]] = {}
        self._remembered: dict[str, Candidates] = {}

    def candidates(self, request: str) -> Candidates:
        """Returns the candidates for a request, which consists of the text of the turn and of the turns before it."""
        found = self._remembered.pop(request, None) or self._candidates(request)
        self._remembered[request] = found
        if len(self._remembered) > _REMEMBERED:
            self._remembered.pop(next(iter(self._remembered)), None)
        return found

    def _candidates(self, request: str) -> Candidates:
        asked, named = _phrases(request), countries_in(request)
        otherwise = [*said_otherwise(asked[1:] or asked), *_adjectives(named)]
        ranked: dict[str, list[Term]] = {}
        places: dict[Place, tuple[Term, ...]] = {}
        ranks: dict[Place, Mapping[Pair, int]] = {}
        chosen = self._data_sets(asked)
        for data_set in chosen:
            for dimension in data_set.dimensions.values():
                place, codes = (data_set.id, dimension.id), dimension.codes
                if len(codes.terms) <= self.most:
                    places[place] = codes.terms
                    continue
                if codes.id not in ranked:
                    least = 0 if is_geographic(dimension.id) else self.most  # countries are known by their names
                    ranked[codes.id] = self._index(codes).offered(asked, max(self.most, DEEPEST), otherwise, least)
                meant = self._meant(dimension, named)
                # First all members of the named group, however many they are; then the terms that the words match.
                found = tuple(dict.fromkeys([*meant, *ranked[codes.id]]))
                places[place] = found[: max(self.most, len(meant))]
                ranks[place] = ranks_of(found, len(meant))
        return Candidates(places, tuple(data_set.id for data_set in chosen), ranks)

    def alike(self, codes: CodeList, name: str, most: int) -> list[Term]:
        """Returns the terms of a code list whose names are most similar to a name, including the exact match."""
        return self._index(codes).best([tuple(words(name))], most)

    def _meant(self, dimension: Dimension, named: Mapping[str, None]) -> list[Term]:
        """Returns the terms of a geographic dimension that stand for the countries that the request names."""
        if not named or not is_geographic(dimension.id):
            return []
        stands_for = self._countries_of(dimension.codes)
        return list(dict.fromkeys(term for code in named for term in stands_for.get(code, ())))

    def _data_sets(self, asked: Sequence[Words]) -> list[DataSet]:
        """Returns the data sets to show for a request.

        These are all of them, or, if there are too many, those whose descriptions and terms match best.
        """
        known = list(self.catalogue.data_sets.values())
        if len(known) <= self.most_data_sets:
            return known
        best = self._data_set_index.best(asked, self.most_data_sets)
        chosen = [self.catalogue.data_sets[term.id] for term in best]
        rest = (data_set for data_set in known if data_set not in chosen)
        return [*chosen, *rest][: self.most_data_sets]

    @cached_property
    def _data_set_index(self) -> Index:
        """An index in which each data set is a term, with the names of its dimensions as synonyms."""
        terms = tuple(
            Term(found.id, found.name, found.description, "", tuple(d.name for d in found.dimensions.values()))
            for found in self.catalogue.data_sets.values()
        )
        return Index(CodeList("data sets", terms))

    def _index(self, codes: CodeList) -> Index:
        if codes.id not in self._indexes:
            self._indexes[codes.id] = Index(codes)
        return self._indexes[codes.id]

    def _countries_of(self, codes: CodeList) -> Mapping[str, tuple[Term, ...]]:
        """Returns the terms for each country, by the country's alpha-3 code."""
        if codes.id not in self._countries:
            found: dict[str, tuple[Term, ...]] = {}
            for term in codes.terms:
                country = country_of(term.id, term.name)
                if country is not None:
                    found[country] = (*found.get(country, ()), term)
            self._countries[codes.id] = found
        return self._countries[codes.id]


def _phrases(request: str) -> list[Words]:
    """Returns the words of the request, then those of each of its parts, so that every item of a list is found.

    The parts of the last line come first. The lines before it are questions of earlier turns, which must not crowd out
    the current one.
    """
    lines = reversed(request.splitlines())
    texts = (request, *(part for line in lines for part in _PHRASE.split(line)))
    parts = [tuple(words(text)) for text in texts]
    return list(dict.fromkeys(part for part in parts if part))[: _MOST_PHRASES + 1] or [()]


def ranks_of(found: Sequence[Term], always: int = 0) -> dict[Pair, int]:
    """Returns the rank of each term; the first `always` ones are offered however few candidates there are."""
    ranks: dict[Pair, int] = {}
    for place, term in enumerate(found):
        ranks.setdefault(term.pair, 1 if place < always else place + 1)
    return ranks


def _adjectives(named: Mapping[str, None]) -> list[Words]:
    """Returns adjectives of the countries that the request names, by which currencies and other terms are called."""
    if len(named) > _MOST_ADJECTIVES:
        return []
    return [tuple(words(adjective)) for code in named for adjective in adjectives_of(code)]
