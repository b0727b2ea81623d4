"""Months, ranges, shares and units of answers: what is another thing than the day or number that it looks like."""

import re
from collections.abc import Mapping

from eval_pipeline.table_comparison.cells import moment_in

_MONTH_FORM = re.compile(r"\d{4}[-/.]\d{1,2}|\d{1,2}/\d{4}|[A-Za-z]{3,9}\.?,? \d{4}|\d{4} [A-Za-z]{3,9}")
_MONTHS_SAID = re.compile(rf"(?<![\d/.-])(?:{_MONTH_FORM.pattern})(?![\d/]|[-.]\d)")
_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_RANGE = re.compile(
    rf"(?:(between )|from )?(-?{_NUMBER})\s?(?:-|–|—|to|through|until|(and))\s?({_NUMBER})", re.IGNORECASE
)
_OF_ALL = re.compile(
    rf"(?<=\d)(\s[^\W\d]+)?\s\(?(?:out )?of (?:the |all )*{_NUMBER}(?:[^\S\n][^\W\d]+)*\)?", re.IGNORECASE
)
_ALL_FIRST = re.compile(rf"^\W*(?:out )?of (?:the |all )*{_NUMBER}(?: [^\W\d]+)*,\s", re.IGNORECASE)
PART_OF = re.compile(
    r"\b(?!(?<=[dht] )(?:half|quarter) of (?:19|20)\d\d\b)"
    r"(?:half|thirds?|quarters?|twice|double|most|none|some|part) of (?:the |all )*\d",
    re.IGNORECASE,
)
"""What makes another number of the one that follows; `the first quarter of 2025` is a time."""
_LOSS = re.compile(r"\b(?:loss|deficit|shortfall|decrease|decline|drop) of\s(?=[$€£¥]?\s?\d)", re.IGNORECASE)
_BRACKETED = re.compile(rf"\(([$€£¥]?\s?{_NUMBER})\)")


def month_of(text: str) -> str | None:
    """Returns the month that a text is, as `2024-03`; None for a day and everything else."""
    bare = re.sub(r"(?<=[A-Za-z])[.,]+(?= )", "", text.strip())
    found = moment_in(bare) if _MONTH_FORM.fullmatch(bare) else None
    return f"{found:%Y-%m}" if found is not None else None


def months_said(text: str) -> list[tuple[str, tuple[int, int]]]:
    """Returns the months in a text that are no part of a day, each with its place."""
    found = ((month_of(match[0]), match.span()) for match in _MONTHS_SAID.finditer(text))
    return [(month, span) for month, span in found if month is not None]


def range_in(text: str) -> tuple[float, float] | None:
    """Returns the range that a text gives as its only numbers: `10-20`, `between 10 and 20`; None if it gives none."""
    found = [one for one in _RANGE.finditer(text) if bool(one[1]) == bool(one[3])]
    if len(found) != 1 or re.search(r"\d", text[: found[0].start()] + text[found[0].end() :]):
        return None
    return float(found[0][2].replace(",", "")), float(found[0][4].replace(",", ""))


def without_total(text: str) -> str:
    """Returns a text without that of which its number is a part: `42 of the 50 orders` is 42."""
    return _ALL_FIRST.sub("", _OF_ALL.sub(lambda found: found[1] or "", text))


def with_signs(text: str) -> str:
    """Returns a text in which a number in brackets alone, as accounts have it, or a loss of so much is negative."""
    bare = text.strip()
    if (found := _BRACKETED.fullmatch(bare)) is not None:
        return f"-{found[1]}"
    return _LOSS.sub(lambda found: f"{found[0]}-", bare)


_UNITS = (
    {"mm": "mm", "millimet": "mm", "cm": "cm", "centimet": "cm", "m": "m", "met": "m", "km": "km", "kilomet": "km"},
    {"mg": "mg", "g": "g", "gram": "g", "kg": "kg", "kilogram": "kg", "t": "t", "tonne": "t", "ton": "t"},
    {"ms": "ms", "second": "s", "s": "s", "minute": "min", "min": "min", "hour": "h", "h": "h", "day": "d", "d": "d"},
    {"€": "EUR", "euro": "EUR", "eur": "EUR", "$": "USD", "dollar": "USD", "usd": "USD", "£": "GBP", "gbp": "GBP"},
)
"""How units of one kind are written, without their endings, and what they are."""
_ASKED_IN = re.compile(r"\b(?:in|how many) ([^\W\d]+|[€$£])", re.IGNORECASE)
_GIVEN_IN = re.compile(r"([€$£])\s?\d|\d\s?([^\W\d]+|[€$£])")


def other_unit(said: str, question: str) -> str | None:
    """Returns in what a number is given if that is another unit of the kind in which it is asked for."""
    for units in _UNITS:
        asked = {unit for word in _ASKED_IN.findall(question) if (unit := _unit(word, units))}
        given = {unit for words in _GIVEN_IN.findall(said) if (unit := _unit("".join(words), units))}
        if len(asked) == 1 and given and not given & asked:
            return ", ".join(sorted(given))
    return None


def _unit(word: str, units: Mapping[str, str]) -> str | None:
    bare = re.sub(r"(?:re|er)?s?$", "", word.casefold()) if len(word) > 2 else word.casefold()
    return units.get(bare)
