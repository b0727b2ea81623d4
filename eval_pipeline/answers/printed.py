"""Reads texts that are nothing but one number: right answers, and cells of tables as filings print them."""

import re
from collections.abc import Sequence
from decimal import Decimal as Exact
from functools import lru_cache

from eval_pipeline.answers.markup import with_plain_digits, without_latex
from eval_pipeline.answers.numbers import Decimal, FoundNumber, numbers_in
from eval_pipeline.core.values import value

_MOST_CHARS = 80
_CURRENCY = r"(?:us\s?\$|[$€£¥₹]|usd|eur|gbp)"
_AROUND = re.compile(rf"\s*(?:{_CURRENCY}\s*)?", re.IGNORECASE)
_BRACKETS = re.compile(rf"([-+–−]?\s*(?:{_CURRENCY}\s*)?)\(([^()]+)\)([^()\d]*)", re.IGNORECASE)
_TWICE = re.compile(r"([^()]*[^()\s])\s*\(([^()]+)\)")
_SIGN = re.compile(r"(?<=[-+–−])\s+")
_PLAIN = re.compile(r"-?[0-9]+(?:\.([0-9]+))?")
"""A number that the whole grammar reads the same, but ten times as slowly: most numbers of programs and cells."""


@value
class Number:
    """A number as printed.

    Attributes:
        value: the quantity; `12.5%` is 0.125.
        percent: whether a percent sign was printed.
        decimals: number of digits printed after the point, in the printed unit (1 for `12.5%`).
    """

    value: float
    percent: bool = False
    decimals: int = 0


def only_number(text: str, *, decimal: Decimal = ".", units: Sequence[str] = ()) -> FoundNumber | None:
    """Returns the number that a text consists of, with a sign, a currency and a unit of `units`; None for others."""
    text = with_plain_digits(without_latex(text))
    found = numbers_in(text, decimal=decimal, units=units)
    if len(found) != 1 or found[0].why:
        return None
    start, end = found[0].span
    return found[0] if _AROUND.fullmatch(text[:start]) and _AROUND.fullmatch(text[end:].removeprefix(".")) else None


@lru_cache(maxsize=1 << 14)
def printed_number(text: str) -> Number | None:
    """Returns the number that a text consists of, as filings print it; None for any other text.

    Brackets mean a negative number (`(1,234)`), and a number may be given twice, as in data sets made from filings:
    `-4.6 ( 4.6 )`. Fractions and magnitudes such as `million` are no part of a printed number.
    """
    text = " ".join(text.split())
    if not text or len(text) > _MOST_CHARS:
        return None
    if plain := _PLAIN.fullmatch(text):
        return Number(float(text), decimals=len(plain[1] or ""))
    bare, is_negative = without_brackets(text)
    found = only_number(bare)
    if found is None or found.scale != 1 or found.decimals is None:
        return _said_twice(text)
    return as_printed(found, negative=is_negative)


def without_brackets(text: str) -> tuple[str, bool]:
    """Returns a text without the brackets of a negative amount, and whether it had them: `$ (5.1) million`."""
    bracketed = _BRACKETS.fullmatch(text)
    return _SIGN.sub("", "".join(bracketed.groups()) if bracketed else text), bracketed is not None


def as_printed(found: FoundNumber, *, negative: bool) -> Number:
    """Returns a number without its magnitude, negative if its brackets say so."""
    unit = Exact(found.scale * (100 if found.percent else 1))
    value = float(Exact(repr(found.value)) / unit)  # in decimal: 8.04 / 100 is not exactly 0.0804
    return Number(-abs(value) if negative else value, found.percent, found.decimals or 0)


def _said_twice(text: str) -> Number | None:
    match = _TWICE.fullmatch(text)
    first, second = map(printed_number, match.groups()) if match else (None, None)
    return first if first and second and abs(first.value) == abs(second.value) else None
