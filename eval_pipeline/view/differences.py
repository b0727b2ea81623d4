"""Two texts word by word: what both have, what only one has."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+(?:[eE][+-]?\d+)?)(?!\w)"
_WORDS = re.compile(rf"{_NUMBER}|\w+|\s+|[^\w\s]")
_MOST_WORDS = 4_000
"""The matcher takes the square of it at worst; longer texts are compared line by line, the longest not at all."""
_MOST_LINES = 4_000

Kind = Literal["same", "removed", "added"]


class Piece(NamedTuple):
    """A run of text that is in both, in the first only, or in the second only."""

    kind: Kind
    text: str


def differences(before: str, after: str, most_words: int = _MOST_WORDS) -> list[Piece]:
    """Pieces that make up the first text without those that are added, and the second without those removed.

    Args:
        before: the first text.
        after: the second text.
        most_words: of both together that are compared one by one; a page with many texts takes fewer.
    """
    for split, most in ((_words, most_words), (_lines, min(_MOST_LINES, most_words))):
        old, new = split(before), split(after)
        if len(old) + len(new) <= most:
            return list(_pieces(old, new))
    return [Piece("removed", before), Piece("added", after)]


def _words(text: str) -> list[str]:
    return _WORDS.findall(text)


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _pieces(old: list[str], new: list[str]) -> Iterator[Piece]:
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            yield Piece("same", "".join(old[a:b]))
            continue
        if a < b:
            yield Piece("removed", "".join(old[a:b]))
        if c < d:
            yield Piece("added", "".join(new[c:d]))
