"""Finds words of a vocabulary that are spelled nearly like an unknown one, or that it is composed of."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise

from eval_pipeline.tracks.sdmx.catalogue.countries import words_of_names
from eval_pipeline.tracks.sdmx.words import Words

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
