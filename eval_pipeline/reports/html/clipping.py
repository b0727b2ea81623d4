"""Texts cut to the room that a page has: long ones only, and all at the same length."""

from collections.abc import Iterable


def clipped(text: str, most: int) -> str:
    """A text that takes at most that many bytes of a page, with a note where it was cut."""
    taken = size(text)
    if taken <= most:
        return text
    return f"{text[: most * len(text) // taken]} … [cut: {len(text):,} characters]"


def size(text: str) -> int:
    """What a text takes of the page when it is escaped, in bytes."""
    taken = len(text.encode(errors="replace"))
    return (
        taken + 4 * (text.count('"') + text.count("'")) + 3 * (text.count("<") + text.count(">")) + 4 * text.count("&")
    )


def common_bound(sizes: Iterable[int], room: int, most: int) -> int:
    """The greatest length, up to `most`, at which texts of these sizes have to be cut to fit into the room together."""
    waiting = sorted(sizes)
    left = room
    for place, taken in enumerate(waiting):
        if taken * (len(waiting) - place) > left:
            return min(most, left // (len(waiting) - place))
        left -= taken
    return most
