"""Which of two calculations a question rather asks for, by its words and the labels of numbers (docs/gold.md)."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain

from eval_pipeline_plugins.tracks.finqa.cases.document import Document
from eval_pipeline_plugins.tracks.finqa.cases.number_places import NumberPlace
from eval_pipeline_plugins.tracks.finqa.programs.expression import Node, Operation, numbers_of, operations_of, places
from eval_pipeline_plugins.tracks.finqa.programs.program import Literal

_WORDS = {
    "divide": r"percent|portion|ratio\b|relation to|relative to|divided|growth rate|average|mean\b|represent",
    "subtract": r"change|differen|increase|decrease|decline|reduction|variation|growth|\bless\b|without|fluctuat",
    "add": r"\bsum\b|total|combined|\bplus\b|including|together",
    "multiply": r"product\b|\btimes\b|multipl",
}
_ASKS = {name: re.compile(words, re.IGNORECASE) for name, words in _WORDS.items()}
_YEAR = re.compile(r"(?:19|20)\d\d")
_NAME = re.compile(r"[a-z]{3,}")
_COMMON = frozenset({"and", "the", "for", "total", "net", "other", "what", "was", "were", "that", "this", "from"})


def prefers(one: Node, other: Node, questions: Sequence[str], page: Document) -> int:
    """Returns 1 if the last question rather asks for one calculation, -1 for the other, 0 if it does not tell.

    It asks for operations that it names, for numbers whose line item and period it names, and for changes since the
    earlier of two years, relative to it. What earlier questions name is carried on.
    """
    scores = [
        _of_operations(tree, questions) + _of_labels(tree, numbers_of(without), questions, page)
        for tree, without in ((one, other), (other, one))
    ]
    if operations_of(one) == operations_of(other):
        scores = [score + _of_order(tree, page) for score, tree in zip(scores, (one, other), strict=True)]
    return (scores[0] > scores[1]) - (scores[0] < scores[1])


def _of_operations(tree: Node, questions: Sequence[str]) -> float:
    """Counts operations that the question names and the tree lacks, and those that it has and no question names."""
    has = set(operations_of(tree))
    lacks = sum(name not in has for name, words in _ASKS.items() if words.search(questions[-1]))
    unasked = sum(name in has and not any(map(words.search, questions)) for name, words in _ASKS.items())
    return -lacks - unasked


def _of_order(tree: Node, page: Document) -> int:
    """Counts differences and ratios to an earlier year, less those to a later one; the same for bases of a growth."""
    score = 0
    for _, node in places(tree):
        if not isinstance(node, Operation) or node.name not in ("subtract", "divide") or len(node.parts) != 2:
            continue
        first, second = node.parts
        if isinstance(first, Operation) and first.name == "subtract":
            score += (second == first.parts[-1]) - (second == first.parts[0])
        elif isinstance(first, Literal) and isinstance(second, Literal):
            mine, theirs = _years(page.places_of(first)), _years(page.places_of(second))
            if mine and theirs:
                score += (max(mine) > max(theirs)) - (max(mine) < max(theirs))
    return score


def _of_labels(tree: Node, others: set[float], questions: Sequence[str], page: Document) -> float:
    """Returns how well the questions name the numbers that only this tree has, on average."""
    asked = next((years for years in map(_years_in, reversed(questions)) if years), set[int]())
    words = set(_NAME.findall(" ".join(questions).lower())) - _COMMON
    found = [
        max((_named(place, asked, words) for place in page.places_of(leaf)), default=0.0)
        for _, leaf in places(tree)
        if isinstance(leaf, Literal) and abs(leaf.value) not in others
    ]
    return sum(found) / len(found) if found else 0.0


def _named(place: NumberPlace, asked: set[int], words: set[str]) -> float:
    years, item = _years([place]), set(_NAME.findall(place.item)) - _COMMON
    of_years = 0 if not years or not asked else 1 if years & asked else -1
    return of_years + (len(item & words) / len(item) if item else 0.0)


def _years(found: Iterable[NumberPlace]) -> set[int]:
    return set(chain.from_iterable(_years_in(" ".join(place.period)) for place in found))


def _years_in(text: str) -> set[int]:
    return set(map(int, _YEAR.findall(text)))
