"""Finds candidate terms for a request.

Each dimension's terms are ranked by BM25; countries that the request names come first.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import zip_longest
from typing import Any

import numpy as np

from eval_pipeline.tracks.sdmx.catalogue.catalogue import Catalogue, CodeList, DataSet, Dimension, Term
from eval_pipeline.tracks.sdmx.catalogue.countries import countries_in, country_of, is_geographic
from eval_pipeline.tracks.sdmx.selection import Place
from eval_pipeline.tracks.sdmx.words import Vocabulary, words

_REMEMBERED = 512
"""How many requests have their candidates cached: the prompt and the scoring of a turn need the same ones."""


Words = tuple[str, ...]
_PHRASE = re.compile(r"[,;:.!?()\n]| and ")
_MOST_PHRASES = 16
_SHARED = 0.5
"""Weight of the whole request's score when it is added to the score of one of its parts."""


@dataclass(frozen=True)
class Candidates:
    """The terms and data sets that the prompt offers for a request.

    Attributes:
        places: for each (data set, dimension) its candidate terms, best first; small dimensions have all their terms,
            in list order.
        data_sets: the data sets that are shown, best first.
    """

    places: Mapping[Place, tuple[Term, ...]]
    data_sets: tuple[str, ...]

    @cached_property
    def _pairs(self) -> Mapping[Place, frozenset[tuple[str, str]]]:
        return {place: frozenset(term.pair for term in terms) for place, terms in self.places.items()}

    def offers(self, place: Place, pair: tuple[str, str]) -> bool:
        """Returns whether the term was among the candidates."""
        return pair in self._pairs.get(place, frozenset())


class Index:
    """A BM25 search index of one code list. It covers each term's id, name, synonyms, parent's name and description."""

    def __init__(self, codes: CodeList) -> None:
        from bm25s import BM25

        self._codes = codes
        self._vocabulary = Vocabulary()
        documents = [self._numbers(term) for term in codes.terms]
        self._scorer: Any = None
        if self._vocabulary.tokens:
            self._scorer = BM25()
            self._scorer.index((documents, self._vocabulary.tokens), create_empty_token=False, show_progress=False)
        self._vocabulary.forget()

    def _numbers(self, term: Term) -> list[int]:
        """Returns the words that describe a term, as numbers; its name counts twice because people use names."""
        above = self._codes.by_id.get(term.parent, ()) if term.parent else ()
        name = self._vocabulary.numbers(term.name)
        others = (term.id, *term.synonyms, *(parent.name for parent in above), term.description)
        return name + name + self._vocabulary.numbers(" ".join(others))

    def best(self, asked: Sequence[Words], most: int) -> list[Term]:
        """Returns at most `most` terms that share a word with the request, best first.

        Args:
            asked: the words of the whole request, then of each of its parts. The parts take turns in giving their best
                term, so that every item of an enumeration is found. Each part's ranking also includes the whole
                request, which says what all items have in common.
            most: how many terms to return at most.
        """
        tokens = self._vocabulary.tokens
        known = [[tokens[word] for word in part if word in tokens] for part in asked]
        if not known or not known[0]:
            return []
        whole = self._scorer.get_scores_from_ids(known[0])
        rankings = [_ranked(np.flatnonzero(whole > 0), whole, most)]
        for part in known[1:]:
            if part:
                scores = self._scorer.get_scores_from_ids(part)
                hits = np.flatnonzero(scores > 0)
                rankings.append(_ranked(hits, scores + _SHARED * whole, most))
        # Take the best term of each ranking, then the second best of each, and so on; no term twice.
        places = dict.fromkeys(place for row in zip_longest(*rankings) for place in row if place is not None)
        return [self._codes.terms[place] for place in list(places)[:most]]


class Retriever:
    """Finds candidates in a catalogue; the index of a code list is built when it is first needed."""

    def __init__(self, catalogue: Catalogue, most: int, most_data_sets: int) -> None:
        """Takes the catalogue, and the maximum numbers of candidates per dimension and of data sets per request."""
        self.catalogue, self.most, self.most_data_sets = catalogue, most, most_data_sets
        self._indexes: dict[str, Index] = {}
        self._countries: dict[str, Mapping[str, tuple[Term, ...]]] = {}
        self.candidates = lru_cache(maxsize=_REMEMBERED)(self._candidates)

    def _candidates(self, request: str) -> Candidates:
        """Returns the candidates for a request, which consists of the text of the turn and of the turns before it."""
        asked, named = _phrases(request), countries_in(request)
        ranked: dict[str, list[Term]] = {}
        places: dict[Place, tuple[Term, ...]] = {}
        chosen = self._data_sets(asked)
        for data_set in chosen:
            for dimension in data_set.dimensions.values():
                places[data_set.id, dimension.id] = self._of_dimension(dimension, asked, named, ranked)
        return Candidates(places, tuple(data_set.id for data_set in chosen))

    def alike(self, codes: CodeList, name: str, most: int) -> list[Term]:
        """Returns the terms of a code list whose names are most similar to a name, including the exact match."""
        return self._index(codes).best([tuple(words(name))], most)

    def _of_dimension(
        self, dimension: Dimension, asked: Sequence[Words], named: Mapping[str, None], ranked: dict[str, list[Term]]
    ) -> tuple[Term, ...]:
        codes = dimension.codes
        if len(codes.terms) <= self.most:
            return codes.terms
        if codes.id not in ranked:
            ranked[codes.id] = self._index(codes).best(asked, self.most)
        found = ranked[codes.id]
        if named and is_geographic(dimension.id):
            stands_for = self._countries_of(codes)
            meant = [term for code in named for term in stands_for.get(code, ())]
            # First all members of the named group, however many they are; then the terms that the words match.
            found = list(dict.fromkeys([*meant, *found]))[: max(self.most, len(meant))]
        return tuple(found)

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


def _ranked(hits: Any, scores: Any, most: int) -> list[int]:
    """Returns the positions with the highest scores, highest first; equal scores keep the list's order."""
    found = scores[hits]
    if len(hits) <= most:
        ordered: list[int] = hits[np.lexsort((hits, -found))].tolist()
        return ordered
    least = np.partition(found, len(found) - most)[len(found) - most]
    above = hits[found > least]
    ordered = above[np.lexsort((above, -scores[above]))].tolist()
    # Thousands may share the lowest score. They are not sorted, because they already are in the list's order.
    ties: list[int] = hits[found == least][: most - len(ordered)].tolist()
    return ordered + ties
