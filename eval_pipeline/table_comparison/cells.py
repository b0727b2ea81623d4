"""Compares cells: what counts as the same value as it stands, and under each relaxation.

Values are compared as database engines compare them: 1 equals 1.0 and true, NULL equals NULL, a date equals midnight of
its day. Numbers are compared by columns: see `numbers`.
"""

import re
from collections.abc import Collection
from datetime import UTC, date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import Any

from eval_pipeline.table_comparison.relaxations import Relaxation

NULL_WORDS = frozenset({"", "null", "none", "nan", "na", "n/a", "nil", "nat", "<na>", "-"})
NAN = ("NaN", "number")

NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9]\d*|[1-9]\d{0,2}(?:,\d{3})+)(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,3})?", re.ASCII)
_PERCENT = re.compile(r"([-+]?\d+(?:\.\d+)?) ?%", re.ASCII)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_NAMES = "january february march april may june july august september october november december".split()
_MONTH = {**{name: place + 1 for place, name in enumerate(_MONTHS)}, "sept": 9} | {
    name: place + 1 for place, name in enumerate(_MONTH_NAMES)
}
_NUMERIC_DATE = re.compile(r"(\d{4})[-/.](\d{1,2})(?:[-/.](\d{1,2}))?", re.ASCII)
_EUROPEAN_DATE = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})", re.ASCII)
_SLASHED_DATE = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})", re.ASCII)
_DAY_FIRST = re.compile(r"(?:(\d{1,2})(?:st|nd|rd|th)?(?: of)?[ -])?([a-z]{3,9})\.?,?[ -](\d{4})", re.ASCII)
_MONTH_FIRST = re.compile(r"([a-z]{3,9})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})", re.ASCII)
_TIME_OF_DAY = re.compile(r"\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?", re.ASCII)
_MONTH_OF_YEAR = re.compile(r"(\d{1,2})/(\d{4})", re.ASCII)
_YEAR_FIRST = re.compile(r"(\d{4})[ -]([a-z]{3,9})", re.ASCII)
_WEEKDAY = re.compile(r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,? (?=\w)", re.ASCII | re.IGNORECASE)
_WITH_TIME = re.compile(
    r"(.{6,}\d),? (\d{1,2})(:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)(?: ?([ap])m)?", re.ASCII | re.IGNORECASE
)
MAY_BE_DATE = re.compile(
    rf"\d{{4}}[-/. ]|\d\d?[-/.: a-z]|(?:{'|'.join(_MONTHS)})[a-z]*[-., ]|{_WEEKDAY.pattern}", re.ASCII | re.IGNORECASE
)
"""The start of texts that `moment_in` may know."""
_LONGEST_DATE = 40
_MOST_DIGITS = 300


def is_slashed(text: str) -> bool:
    """Whether a text is a day whose month may stand first or second, with or without a time of day."""
    return _SLASHED_DATE.match(text) is not None


def key_of(cell: Any) -> Any:
    """Returns a hashable key that is equal for cells that are equal as they stand, close floats apart."""
    if cell is None or isinstance(cell, str | int):
        return cell  # in Python, too, True equals 1
    if isinstance(cell, float):
        return cell if cell == cell else NAN
    if isinstance(cell, Decimal):
        return _decimal_key(cell)
    if isinstance(cell, datetime):
        return cell if cell.tzinfo is None else _without_zone(cell)
    if isinstance(cell, date):
        return datetime(cell.year, cell.month, cell.day)
    return _nested_key(cell)


def _decimal_key(cell: Decimal) -> Any:
    if cell.is_nan():
        return NAN
    if not cell.is_finite():
        return float(cell)
    # The hash of 1E+999999999 would take for ever.
    return cell if abs(cell.adjusted()) < _MOST_DIGITS else ("decimal", str(cell.normalize()))


def _nested_key(cell: Any) -> Any:
    if isinstance(cell, list | tuple):
        return ("list", *map(key_of, cell))
    if isinstance(cell, dict):
        return ("struct", *((name, key_of(item)) for name, item in cell.items()))
    if isinstance(cell, set | frozenset):
        return ("set", frozenset(map(key_of, cell)))
    try:
        hash(cell)
    except TypeError:
        return ("other", repr(cell))
    return cell


def _without_zone(moment: datetime) -> Any:
    try:
        return moment.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:  # within a day of year 1 or 9999
        return moment.isoformat()


def relaxed_key(key: Any, overlooked: Collection[Relaxation], *, day_first: bool = False) -> Any:
    """Returns the key that a key has if something of its form is overlooked; `day_first` is for `moment_in`."""
    if key == NAN and Relaxation.NULLS in overlooked:
        return None
    if not isinstance(key, str):
        return key
    text = " ".join(key.split()) if Relaxation.WHITE_SPACE in overlooked else key
    if Relaxation.NULLS in overlooked and text.strip().casefold() in NULL_WORDS:
        return None
    if Relaxation.TEXT_NUMBERS in overlooked and (number := number_in(text.removesuffix("%").rstrip())) is not None:
        return number
    if Relaxation.PERCENT in overlooked and (percent := _PERCENT.fullmatch(text)):
        return text if (number := _number(percent[1])) is None else number
    if Relaxation.DATES in overlooked and (moment := moment_in(text, day_first=day_first)) is not None:
        return moment
    return text.casefold() if Relaxation.CASE in overlooked else text


def number_in(text: str) -> int | float | None:
    """Returns the number that a text is; None if it is none, or has leading zeros as identifiers have."""
    return _number(text.replace(",", "")) if NUMBER.fullmatch(text) else None


def _number(text: str) -> int | float | None:
    """Returns the number; None if it is too large for a float."""
    number = float(text)
    if not isfinite(number):
        return None
    return int(text) if text.lstrip("+-").isdigit() else number


def moment_in(text: str, *, day_first: bool = False) -> datetime | time | None:
    """Returns the moment that a text is: a day is its midnight, a month its first day; None if it is none.

    `03/04/2024` is the fourth of March, the third of April if `day_first`.
    """
    if not 5 <= len(text) <= _LONGEST_DATE or not any(map(str.isdigit, text)):
        return None
    try:
        return _moment(text, day_first)
    except (ValueError, OverflowError):
        return None


def _moment(text: str, day_first: bool) -> datetime | time | None:
    if found := _NUMERIC_DATE.fullmatch(text):
        return datetime(int(found[1]), int(found[2]), int(found[3] or 1))
    if text[:4].isdigit() and text[4:5] == "-":
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    if _TIME_OF_DAY.fullmatch(text):
        return time.fromisoformat(text)
    if found := _EUROPEAN_DATE.fullmatch(text):
        return datetime(int(found[3]), int(found[2]), int(found[1]))
    if found := _SLASHED_DATE.fullmatch(text):
        day, month = (int(found[1]), int(found[2])) if day_first else (int(found[2]), int(found[1]))
        return datetime(int(found[3]), month, day)
    if found := _MONTH_OF_YEAR.fullmatch(text):
        return datetime(int(found[2]), int(found[1]), 1)
    return _moment_in_words(text.lower()) or _moment_in_parts(text, day_first)


def _moment_in_words(text: str) -> datetime | None:
    if (found := _DAY_FIRST.fullmatch(text)) and found[2] in _MONTH:
        return datetime(int(found[3]), _MONTH[found[2]], int(found[1] or 1))
    if (found := _MONTH_FIRST.fullmatch(text)) and found[1] in _MONTH:
        return datetime(int(found[3]), _MONTH[found[1]], int(found[2]))
    if (found := _YEAR_FIRST.fullmatch(text)) and found[2] in _MONTH:
        return datetime(int(found[1]), _MONTH[found[2]], 1)
    return None


def _moment_in_parts(text: str, day_first: bool) -> datetime | time | None:
    """Returns the moment of a day with its weekday before it, or with a time of day after it."""
    if found := _WEEKDAY.match(text):
        return _moment(text[found.end() :], day_first)
    if found := _WITH_TIME.fullmatch(text):
        day, half = _moment(found[1], day_first), (found[4] or "").lower()
        hour = int(found[2]) % 12 + 12 * (half == "p") if half else int(found[2])
        if isinstance(day, datetime) and day.time() == time.min:
            return datetime.combine(day, time.fromisoformat(f"{hour:02d}{found[3]}"))
    return None
