"""Parses numbers as printed in filings and by models, and formats numbers for people."""

import re
from functools import lru_cache
from math import floor, isfinite

from eval_pipeline.core.values import value

_MAX_CHARS = 80
_PLAIN = frozenset("0123456789.-+")
_SIGNS = str.maketrans({"−": "-", "–": "-", "\u00a0": " ", "\u202f": " ", "\u2009": " "})
_CURRENCY = r"(?:us\s?\$|[$€£¥₹]|usd|eur|gbp)"
_FORM = re.compile(
    rf"""
    (?P<sign>[-+])?\s*
    (?:{_CURRENCY}\s*)?
    (?P<open>\()?\s*
    (?P<inner>[-+])?\s*
    (?:{_CURRENCY}\s*)?
    (?P<second>[-+])?\s*
    (?P<whole>\d{{1,3}}(?:,\d{{2,3}})*,\d{{3}} | \d{{1,3}}(?:[ ]\d{{3}})+ | \d*)
    (?P<fraction>\.\d*)?
    (?P<exponent>e[-+]?\d{{1,3}})?
    (?P<percent>\s*(?:%|percent\b|pct\b))?
    \s*(?P<close>\))?
    (?P<late>\s*(?:%|percent\b|pct\b))?
    (?:\s*{_CURRENCY})?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_TWICE = re.compile(r"(?P<first>[^()]*[^()\s])\s*\((?P<second>[^()]+)\)")


@value
class Number:
    """A parsed number.

    Attributes:
        value: the quantity; `12.5%` is 0.125.
        percent: whether a percent sign was printed.
        decimals: number of digits printed after the point, in the printed unit (1 for `12.5%`).
    """

    value: float
    percent: bool = False
    decimals: int = 0


def parse_number(text: str) -> Number | None:
    """Parses a text that is exactly one finite number; returns None for any other text.

    Understands currency signs, thousands separators, white space, accounting negatives such as `(1,234)`, percent
    signs, and numbers given twice, as in data sets made from filings: `-4.6 ( 4.6 )`.
    """
    text = text.strip()
    if not text or len(text) > _MAX_CHARS:
        return None
    if _PLAIN.issuperset(text):
        return _plain(text)
    text = text.translate(_SIGNS)
    match = _FORM.fullmatch(text)
    return _said_twice(text) if match is None else _formed(match)


def _plain(text: str) -> Number | None:
    try:
        value = float(text)
    except ValueError:
        return None
    point = text.find(".")
    return Number(value, False, 0 if point < 0 else len(text) - point - 1)


def _formed(match: re.Match[str]) -> Number | None:
    part = match.groupdict()
    whole, fraction = part["whole"], part["fraction"] or ""
    signs = [sign for sign in (part["sign"], part["inner"], part["second"]) if sign]
    brackets = part["open"] is not None
    if len(fraction) + len(whole) - bool(fraction) < 1 or len(signs) > 1 or brackets != (part["close"] is not None):
        return None
    shift = int(part["exponent"][1:]) if part["exponent"] else 0
    percent = bool(part["percent"] or part["late"])
    digits = whole.replace(",", "").replace(" ", "") or "0"
    # Divide by 100 in the decimal text: the float 8.04 / 100 is not exactly 0.0804.
    value = float(f"{digits}{fraction}e{shift - 2 if percent else shift}")
    if not isfinite(value) or (part["percent"] and part["late"]):
        return None
    if brackets or signs == ["-"]:  # "(-5)" is printed for -5, not for 5
        value = -value
    return Number(value, percent, max(max(len(fraction) - 1, 0) - shift, 0))


def _said_twice(text: str) -> Number | None:
    match = _TWICE.fullmatch(text)
    if match is None:
        return None
    first, second = parse_number(match["first"]), parse_number(match["second"])
    if first is None or second is None or abs(first.value) != abs(second.value):
        return None
    return first


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
