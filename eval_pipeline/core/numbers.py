"""Rounds numbers and formats them for people."""

from functools import lru_cache
from math import floor, isfinite


def round_half_up(value: float, decimals: int) -> float | None:
    """Returns the value in units of its last kept decimal (11.25, 1 → 113), halves away from zero; None on overflow.

    A value within float noise below a half counts as a half, so that 2.675 becomes 2.68 as on paper.
    """
    scaled = abs(value) * 10.0 ** min(decimals, 300)
    if not isfinite(scaled):
        return None
    units = float(floor(scaled + 0.5 + scaled * 1e-14))
    return -units if value < 0 else units


@lru_cache(maxsize=4096)
def number_text(value: float) -> str:
    """Formats a number with ten significant digits, without exponent or trailing zeros."""
    if not isfinite(value):
        return str(value)
    text = f"{value:.10g}"
    if "e" in text:
        text = f"{value:.0f}" if abs(value) >= 1 else f"{value:.20f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def normalised_text(text: str) -> str:
    """Returns the text in lower case without punctuation and white space, for comparing words such as yes and no."""
    return "".join(character for character in text.casefold() if character.isalnum())
