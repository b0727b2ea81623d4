"""Reads columns that name periods, in whichever way: `resample("MS")` or `"ME"`, `to_period("M")`, `dt.month`."""

import re
from collections.abc import Iterator, Sequence
from datetime import MAXYEAR, date, datetime, time, timedelta
from typing import Any

from eval_pipeline.table_comparison.cells import moment_in

Cells = Sequence[Any]
_QUARTER = re.compile(r"Q?([1-4])", re.ASCII)
_QUARTER_OF_YEAR = re.compile(r"(\d{4})[-/ ]?Q([1-4])|Q([1-4])[-/ ](\d{4})", re.ASCII)
_LAST_SECOND = time(23, 59, 59)
_YEARS = range(1800, 2200)
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_KINDS = (("month", False), ("month", True), ("quarter", False), ("quarter", True), ("year", False), ("week", False))
"""Kinds of periods, and whether they are told by their number within a year."""


def readings(
    mine: Sequence[Cells],
    theirs: Sequence[Cells],
    may_be_numbers: tuple[Sequence[bool], Sequence[bool]],
    *,
    of_one_year: bool,
) -> Iterator[list[list[Cells]]]:
    """Yields the columns of two tables with those that name periods of one kind written alike.

    Periods are named by their first or their last moment, a year also by its number.

    Args:
        mine: the cells of the columns of one table.
        theirs: those of the other.
        may_be_numbers: of each column of `mine` and of `theirs`, whether numbers in it may stand for periods by what it
            is called. Where that leaves none of `theirs`, numbers in any of them may.
        of_one_year: whether months and quarters may also be named by their number or name within the year.
    """
    for kind, within_year in _KINDS:
        if within_year and not of_one_year:
            continue
        left, right = (
            [_written(cells, kind, within_year, may) for cells, may in zip(columns, called, strict=True)]
            for columns, called in zip((mine, theirs), may_be_numbers, strict=True)
        )
        if not any(right):
            right = [_written(cells, kind, within_year, True) for cells in theirs]
        if any(left) and sum(map(bool, left)) == sum(map(bool, right)):
            pairs = ((left, mine), (right, theirs))
            yield [[new or old for new, old in zip(found, cells, strict=True)] for found, cells in pairs]


def _written(cells: Cells, kind: str, within_year: bool, may_be_numbers: bool) -> list[str] | None:
    """Returns the periods' common names; None if the cells are no periods of that kind."""
    if days := _first_days(cells, kind):
        if not within_year:
            return [day.isoformat() for day in days]
        months = _MONTHS[kind]
        one_year = len({day.year for day in days}) == 1
        return [f"{kind} {(day.month - 1) // months + 1}" for day in days] if one_year else None
    if not (may_be_numbers and (within_year or kind == "year") and all(_number(cell, kind) for cell in cells)):
        return None
    return [f"{kind} {_number(cell, kind)}" if within_year else f"{_number(cell, kind)}-01-01" for cell in cells]


def _first_days(cells: Cells, kind: str) -> list[date]:
    """Returns the first day of each period if all cells are first moments of periods, or all are last ones."""
    moments: list[datetime] = []
    for cell in cells:
        moment = moment_in(cell) if isinstance(cell, str) else cell
        if not isinstance(moment, datetime) or moment.year == MAXYEAR:
            return []
        moments.append(moment)
    bounds = [_bounds(moment.date(), kind) for moment in moments]
    told = list(zip(moments, bounds, strict=True))
    begins = all(moment == datetime.combine(first, time.min, moment.tzinfo) for moment, (first, _) in told)
    ends = all(moment.date() == last and not time.min < moment.time() < _LAST_SECOND for moment, (_, last) in told)
    return [first for first, _ in bounds] if begins or ends else []


def _bounds(day: date, kind: str) -> tuple[date, date]:
    """Returns the first and the last day of the period that a day is in."""
    if kind == "week":
        monday = day - timedelta(days=day.weekday())
        return monday, monday + timedelta(days=6)
    months = _MONTHS[kind]
    first = day.replace(month=(day.month - 1) // months * months + 1, day=1)
    after = first.year * 12 + first.month - 1 + months
    return first, date(after // 12, after % 12 + 1, 1) - timedelta(days=1)


def _number(cell: Any, kind: str) -> int:
    """Returns the number of a month, quarter or year; 0 if the cell is none."""
    text = str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
    if kind == "quarter":
        return int(found[1]) if (found := _QUARTER.fullmatch(text)) else 0
    if text.isascii() and text.isdigit() and len(text) <= 4:
        return int(text) if int(text) in (_YEARS if kind == "year" else range(1, 13)) else 0
    named = moment_in(f"{text} 2000") if kind == "month" and text.isalpha() else None
    return named.month if isinstance(named, datetime) else 0


def month_of_quarter(text: str) -> str:
    """Returns the first month of a quarter such as `2024Q1` or `Q1 2024`, any other text as it is."""
    found = _QUARTER_OF_YEAR.fullmatch(text)
    return text if found is None else f"{found[1] or found[4]}-{3 * int(found[2] or found[3]) - 2:02d}"
