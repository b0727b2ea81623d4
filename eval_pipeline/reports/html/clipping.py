"""Shortens texts to fit into a page: only long ones are cut, and all to the same length."""

from collections.abc import Iterable


def clipped(text: str, most: int) -> str:
    """Returns the text, cut to at most that many bytes of a page, with a note if it was cut."""
    taken = size(text)
    if taken <= most:
        return text
    return f"{text[: most * len(text) // taken]} … [cut: {len(text):,} characters]"


def size(text: str) -> int:
    """Returns how many bytes a text takes in the page after escaping."""
    taken = len(text.encode(errors="replace"))
    return (
        taken + 4 * (text.count('"') + text.count("'")) + 3 * (text.count("<") + text.count(">")) + 4 * text.count("&")
    )


def common_bound(sizes: Iterable[int], room: int, most: int) -> int:
    """Returns the greatest length (at most `most`) to which texts must be cut to fit into the room together."""
    waiting = sorted(sizes)
    left = room
    for place, taken in enumerate(waiting):
        if taken * (len(waiting) - place) > left:
            return min(most, left // (len(waiting) - place))
        left -= taken
    return most
