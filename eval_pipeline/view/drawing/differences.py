"""Compares two texts word by word: what both have, and what only one has."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+(?:[eE][+-]?\d+)?)(?!\w)"
_WORDS = re.compile(rf"{_NUMBER}|\w+|\s+|[^\w\s]")
_MOST_WORDS = 4_000
"""The matcher's time grows with the square of this; longer texts are compared by line, very long ones not at all."""
_MOST_LINES = 4_000

Kind = Literal["same", "removed", "added"]


class Piece(NamedTuple):
    """A piece of text that is in both texts, only in the first, or only in the second."""

    kind: Kind
    text: str


def differences(before: str, after: str, most_words: int = _MOST_WORDS) -> list[Piece]:
    """Returns pieces in order: all but the added ones make up the first text, all but the removed ones the second.

    Args:
        before: the first text.
        after: the second text.
        most_words: the most words, in both together, to compare one by one; pages with many texts use fewer.
    """
    for split, most in ((_words, most_words), (_lines, min(_MOST_LINES, most_words))):
        old, new = split(before), split(after)
        if len(old) + len(new) <= most:
            return list(_pieces(old, new))
    return [Piece("removed", before), Piece("added", after)]


class Passage(NamedTuple):
    """The part of two texts in which they differ, with a line before and after it that they share.

    Attributes:
        pieces: the pieces of the part.
        before, after: whether the texts have more that is equal before and after it.
    """

    pieces: list[Piece]
    before: bool
    after: bool


def passage(before: str, after: str, most_words: int = _MOST_WORDS) -> Passage | None:
    """Returns the part in which two texts differ, or None if they are equal; for long texts that mostly agree.

    Args:
        before: the first text.
        after: the second text.
        most_words: as for `differences`.
    """
    if before == after:
        return None
    old, new = _lines(before), _lines(after)
    shorter = min(len(old), len(new))
    start = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    left = shorter - start
    end = next((n for n in range(left) if old[-1 - n] != new[-1 - n]), left)
    first, last = max(start - 1, 0), max(end - 1, 0)
    kept, changed = ("".join(lines[first : len(lines) - last]) for lines in (old, new))
    return Passage(differences(kept, changed, most_words), first > 0, last > 0)


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
