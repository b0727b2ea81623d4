"""Searches one code list: whole names first, then BM25 over words, other wordings and words that are spelled alike."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice, pairwise, zip_longest
from typing import Any

import numpy as np

from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import CodeList, Term
from eval_pipeline_plugins.tracks.sdmx.catalogue.countries import words_of_names
from eval_pipeline_plugins.tracks.sdmx.search.words import Vocabulary, Words

_SHORTEST = 4


"""Shorter words are too much like many others."""


_LEAST = 0.5


"""Least Dice coefficient of the letter triples of two words that count as nearly the same; set on half a of the suite
`sdmx_everyday`."""


_MOST = 3


_SHORTEST_PIECE = 3


class NearWords:
    """Looks up unknown words by their letter triples (character trigrams, with the ends of the word marked)."""

    def __init__(self, tokens: Mapping[str, int]) -> None:
        """Takes the number of each word; words with digits are codes, and are not compared."""
        self._tokens = tokens
        self._sizes: dict[str, int] = {}
        self._having: dict[str, list[str]] = {}
        for word in tokens:
            if len(word) >= _SHORTEST and word.isalpha():
                triples = _triples(word)
                self._sizes[word] = len(triples)
                for triple in triples:
                    self._having.setdefault(triple, []).append(word)

    def instead(self, part: Words) -> Iterator[list[int]]:
        """Yields for each word of a request that is not in the vocabulary the numbers of those that may be meant.

        They are the two words that it is composed of ("toothbrush"), else up to three that are spelled most alike. Two
        words of the request that are one word of the vocabulary ("smart phone") are found, too.
        """
        for first, second in pairwise(part):
            if first + second in self._tokens:
                yield [self._tokens[first + second]]
        for word in part:
            if word not in self._tokens and len(word) >= _SHORTEST and word.isalpha():
                found = self._pieces(word) or self._alike(word)
                if found:
                    yield found

    def _pieces(self, word: str) -> list[int]:
        for cut in range(_SHORTEST_PIECE, len(word) - _SHORTEST_PIECE + 1):
            first, second = self._tokens.get(word[:cut]), self._tokens.get(word[cut:])
            if first is not None and second is not None:
                return [first, second]
        return []

    def _alike(self, word: str) -> list[int]:
        triples = _triples(word)
        common = Counter(other for triple in triples for other in self._having.get(triple, ()))
        shares = ((2 * n / (len(triples) + self._sizes[other]), other) for other, n in common.items())
        near = sorted((-share, other) for share, other in shares if share >= _LEAST)
        if word in words_of_names():  # "Qatar" may mean Qatari, but Poland no Portland cement
            near = [(share, other) for share, other in near if other.startswith(word)]
        return [self._tokens[other] for _, other in near[:_MOST]]


def _triples(word: str) -> set[str]:
    marked = f"^{word}$"
    return {marked[place : place + 3] for place in range(len(marked) - 2)}


_SHARED = 0.5


"""Weight of the whole request's score when it is added to the score of one of its parts."""


_LONGEST_NAME = 8


_MOST_NAMESAKES = 5


"""Most terms of one name, or of one main word, for which the name decides. Others, such as an "Other" in every chapter
or "Exports" in a dozen units, are not told apart by it."""


_UNKNOWN = -1


_PARTS = re.compile("[;:]")


_ASIDE = re.compile("[,(]")


_CHILDREN = 2


"""After so many of its children a parent is offered. After the first one, parents would take the places of what is
asked for (0.63 of the goods of `sdmx_everyday` are among the first five, and 0.79 after the second)."""


_FIRST, _AFTER = 3, 10


"""After how many terms the parents of how many first ones are offered, if they were not before."""


_MOST_UNKNOWN = 6


"""Unknown words of a request that are replaced by similar ones at most, to bound the time of a search."""


class Index:
    """A search index of one code list. It covers each term's id, name, synonyms, parent's name and description."""

    def __init__(self, codes: CodeList) -> None:
        from bm25s import BM25

        self._codes = codes
        self._vocabulary = Vocabulary()
        self._named: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._headed: dict[tuple[int, ...], tuple[int, ...]] = {}
        documents = [self._numbers(place, term) for place, term in enumerate(codes.terms)]
        first = {term.id: place for place, term in reversed([*enumerate(codes.terms)])}
        self._above = [first.get(term.parent) if term.parent else None for term in codes.terms]
        self._scorer: Any = None
        if self._vocabulary.tokens:
            self._scorer = BM25()
            self._scorer.index((documents, self._vocabulary.tokens), create_empty_token=False, show_progress=False)
        self._vocabulary.forget()

    def _numbers(self, place: int, term: Term) -> list[int]:
        """Returns the words that describe a term, as numbers; its name counts twice because people use names."""
        above = self._codes.by_id.get(term.parent, ()) if term.parent else ()
        name = self._vocabulary.numbers(term.name)
        _remember(self._named, name, place)
        for synonym in term.synonyms:
            _remember(self._named, self._vocabulary.numbers(synonym), place)
        for head in _heads(term.name):
            _remember(self._headed, self._vocabulary.numbers(head), place)
        others = (term.id, *term.synonyms, *(parent.name for parent in above), term.description)
        return name + name + self._vocabulary.numbers(" ".join(others))

    def _ancestors(self, place: int) -> Iterator[int]:
        met = {place}
        while (above := self._above[place]) is not None and above not in met:
            met.add(above)
            yield above
            place = above

    @cached_property
    def _near(self) -> NearWords:
        return NearWords(self._vocabulary.tokens)

    def offered(self, asked: Sequence[Words], most: int, otherwise: Sequence[Words] = (), least: int = 0) -> list[Term]:
        """Returns the terms to offer for a request: the best ones, their parents, and others for the places left.

        A request may mean a heading of which the list names the parts ("furniture": wooden, of metal, of plastics). So
        a parent follows the second of its children, and those of the best terms come early. If these are fewer than
        `least`, the other parents of what was found come last, and then one term of each kind in the list. Other
        arguments as in `best`.
        """
        met: dict[int, None] = {}
        children: Counter[int] = Counter()
        early: list[int] = []
        for hit in self._found(asked, most, otherwise):
            place: int | None = hit
            while place is not None and place not in met:
                met[place] = None
                place = self._above[place]
                if place is not None:
                    children[place] += 1
                    place = place if children[place] == _CHILDREN else None
            if len(met) >= _AFTER and not early:
                early = [above for place in islice(met, _FIRST) if (above := self._above[place]) is not None]
                met |= dict.fromkeys(early)
            if len(met) >= most:
                break
        kinds = (place for place in self._kinds if place not in children)
        others = (place for place in chain(children, kinds) if place not in met)
        places = chain(islice(met, most), islice(others, max(least - len(met), 0)))
        return [self._codes.terms[place] for place in places]

    def best(self, asked: Sequence[Words], most: int, otherwise: Sequence[Words] = ()) -> list[Term]:
        """Returns at most `most` terms that fit the request, best first.

        They share a word with the request or with another wording, or have a word that is spelled like one of it. Terms
        whose whole name or synonym is in a part of the request are the best ones for it. Asking for more terms never
        changes the first ones.

        Args:
            asked: the words of the whole request, then of each of its parts. The parts take turns in giving their best
                term, so that every item of an enumeration is found. Each part's ranking also includes the whole
                request, which says what all items have in common.
            most: how many terms to return at most.
            otherwise: other wordings of names in the request, which take turns with the parts.
        """
        return [self._codes.terms[place] for place in self._found(asked, most, otherwise)[:most]]

    def _found(self, asked: Sequence[Words], most: int, otherwise: Sequence[Words]) -> list[int]:
        if self._scorer is None or not asked:
            return []
        whole = self._known(asked[0])
        shared = self._scorer.get_scores_from_ids(whole) if whole else np.zeros(len(self._codes.terms))
        rankings = [ranking for part in asked[1:] or asked for ranking in self._rankings(part, shared, most)]
        if asked[1:]:
            fitting = _ranked(np.flatnonzero(shared > 0), shared, most)
            rankings = [fitting, *rankings, *self._whole_names(asked[0], self._named)]
        others = [ranking for part in otherwise for ranking in self._rankings(part, shared, most)]
        similar = islice(self._near.instead(asked[0]), _MOST_UNKNOWN)
        others.extend(self._scored(near, shared, most) for near in similar)
        # Take the best terms of each ranking, then the next best of each, and so on; no term twice. What the request
        # itself says gives two terms at a time, because other words for it are less certain.
        turns = [*chain.from_iterable((ranking[::2], ranking[1::2]) for ranking in rankings), *others]
        return list(dict.fromkeys(place for row in zip_longest(*turns) for place in row if place is not None))

    @cached_property
    def _kinds(self) -> list[int]:
        """The positions of all terms: those nearest to the top first, and of these one for each main word."""
        depths = [sum(1 for _ in self._ancestors(place)) for place in range(len(self._above))]
        met: Counter[tuple[int, str]] = Counter()
        keys = []
        for place, term in enumerate(self._codes.terms):
            kind = (depths[place], _ASIDE.split(term.name, 1)[0])
            keys.append((depths[place], met[kind], place))
            met[kind] += 1
        return [place for *_, place in sorted(keys)]

    def _known(self, part: Words) -> list[int]:
        return [self._vocabulary.tokens[word] for word in part if word in self._vocabulary.tokens]

    def _rankings(self, part: Words, shared: Any, most: int) -> Iterator[Sequence[int]]:
        """Yields the terms of each name in a part of the request, then all others that fit the part, best first."""
        known = self._known(part)
        if known:
            yield from self._whole_names(part, self._named)
            heads = chain.from_iterable(self._whole_names(part, self._headed))
            yield list(dict.fromkeys((*heads, *self._scored(known, shared, most))))

    def _scored(self, known: list[int], shared: Any, most: int) -> list[int]:
        scores = self._scorer.get_scores_from_ids(known)
        return _ranked(np.flatnonzero(scores > 0), scores + _SHARED * shared, most)

    def _whole_names(self, part: Words, names: Mapping[tuple[int, ...], Sequence[int]]) -> Iterator[Sequence[int]]:
        """Yields the positions of the terms with each name in a part; at each place of it the longest name counts."""
        numbers = tuple(self._vocabulary.tokens.get(word, _UNKNOWN) for word in part)
        place = 0
        while place < len(numbers):
            lengths = range(min(_LONGEST_NAME, len(numbers) - place), 0, -1)
            length = next((length for length in lengths if numbers[place : place + length] in names), 0)
            if length and len(names[numbers[place : place + length]]) <= _MOST_NAMESAKES:
                yield names[numbers[place : place + length]]
            place += length or 1


def _remember(names: dict[tuple[int, ...], tuple[int, ...]], name: Sequence[int], place: int) -> None:
    """Adds a term to those of its name, until they are too many for the name to decide."""
    known = names.get(tuple(name), ())
    if len(known) <= _MOST_NAMESAKES and place not in known:
        names[tuple(name)] = (*known, place)


def _heads(name: str) -> list[str]:
    """Returns the main words of a name: of each of its parts between semicolons or colons those before the first comma.

    A name without such marks is its own main word, and left out.
    """
    heads = [_ASIDE.split(part, 1)[0] for part in _PARTS.split(name)]
    return heads if heads != [name] else []


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
