"""What a call computes, as plain facts that are the same in SQL and in Python: conditions, aggregates, factors."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Any

from eval_pipeline.core.values import value

ROWS = frozenset({"where", "match", "join", "group", "distinct", "pick"})
LIMITS = frozenset({"limit", "over"})
FIGURES = frozenset({"aggregate", "case", "factor", "number", "round", "operator"})
ORDERS = frozenset({"order"})
"""Of what is not the same in another order: what is divided by or subtracted from what."""
TEXTS = frozenset({"text", "select"})
AGGREGATES = {
    **{one: one for one in ("sum", "mean", "count", "max", "min", "median", "std", "quantile", "var")},
    "avg": "mean",
    "Counter": "count",
    "value_counts": "count",
    "countif": "count",
    "len": "count",
    "size": "count",
    "stddev": "std",
    "total": "sum",
    "quantilecont": "quantile",
    "variance": "var",
}
SHARE = (("aggregate", "count"), ("operator", "/"))
"""What the mean of yes and no is."""
OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "intdiv": "//", "mult": "*", "floordiv": "//", "mod": "%"}
TURNED = {">": "<", "<": ">", ">=": "<=", "<=": ">="}
DENIED = {"=": "<>", "<>": "=", ">": "<=", "<": ">=", ">=": "<", "<=": ">", "like": "not like", "not like": "like"}
TURNED_OVER = {">=": "<", "<": ">="}
_YEAR = 4
_LONGEST_NUMBER = 20
_SIGN = re.compile(r" (=|<>|<=|>=|<|>|like|not like) ")
_PERIOD = re.compile(
    r"(.*) (=|like|<=|>=|<|>) ((?:19|20)\d\d(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?)"
    r"[-%]{0,2}(?:(?<=-\d\d-\d\d) (2[23]):00(?::00)?)?"
)
_MONTHS = "janfebmaraprmayjunjulaugsepoctnovdec"
_MONTH = re.compile(
    rf"(.* =) (?:(0[1-9]|1[0-2])[./]|({'|'.join(_MONTHS[at : at + 3] for at in range(0, 36, 3))})[a-z]* )"
    r"((?:19|20)\d\d)",
    re.IGNORECASE,
)


@value
class CodeFact:
    """One thing that code says.

    Attributes:
        kind: one of `ROWS`, `LIMITS`, `FIGURES`, `ORDERS` or `TEXTS`, `from`, `column` or `sort`.
        what: what it says, the same in every language.
    """

    kind: str
    what: str


Facts = Counter[CodeFact]
Told = Iterator[tuple[str, str]]


def plain(constant: Any) -> str:
    """Returns a constant as every language writes it: 1.0 is 1, but 01 is a text."""
    text = str(constant)
    try:
        return f"{float(text):g}" if len(text) < _LONGEST_NUMBER and not re.match(r"0\d", text) else text
    except ValueError:
        return " ".join(text.split())


def parts_of(condition: str) -> tuple[str, str, str]:
    """Returns what a condition is on, how it compares, and with what."""
    column, sign, constant = [*_SIGN.split(condition, maxsplit=1), "", ""][:3]
    return (column, sign, constant) if sign else ("", *condition.partition(" ")[::2])


def plainly(facts: Facts) -> Facts:
    """Returns facts in which a number is the same wherever it stands, and a choice whatever its column is called.

    Conditions on years, months and days are told by the days between which they keep what is there.
    """
    found, periods = Facts(), dict[str, list[tuple[str, str]]]()
    for one, count in facts.items():
        what = one.what.rpartition(" ")[2] if one.kind == "case" else one.what
        if one.kind == "where":
            what = f"{what.removeprefix('not ')} = 0" if what.startswith("not ") else _of_month(what)
        if one.kind == "where" and (period := _PERIOD.fullmatch(what)) is not None:
            day = _day([*map(int, period[3].split("-")[:2]), int(period[3][8:]) + 1]) if period[4] else period[3]
            periods.setdefault(period[1], []).append((period[2], day))
            continue
        found[CodeFact("number" if one.kind == "factor" else one.kind, what)] += count
    for column, told in periods.items():
        months = [CodeFact("where", f"{column} = {month}") for month in range(1, 13)]
        within = [month for month, one in enumerate(months, 1) if one in found]
        years = [year for sign, year in told if sign == "=" and len(year) == _YEAR]
        if years and within:
            told = [("=", f"{year}-{month:02}") for year in years for month in within]
            for one in months:
                del found[one]
        for bound in _hull([(*_bounds(sign, period),) for sign, period in told]):
            found[CodeFact("where", f"{column} {bound}")] += 1
    return found


def _of_month(condition: str) -> str:
    """Returns a condition on a month that is written `06.2025` or `Jun 2025` as one on `2025-06`."""
    found = _MONTH.fullmatch(condition)
    if found is None:
        return condition
    month = found[2] or f"{_MONTHS.index(found[3].casefold()) // 3 + 1:02}"
    return f"{found[1]} {found[4]}-{month}"


def _hull(told: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yields bounds without those at which one period ends and the next one begins."""
    every = Counter(bound for bounds in told for bound in bounds)
    for bound in every:
        sign, day = bound.split()
        if len(told) < 2 or f"{TURNED_OVER[sign]} {day}" not in every:
            yield bound


def _bounds(sign: str, told: str) -> Iterator[str]:
    """Yields the days between which a condition on a year, a month or a day keeps what is there."""
    first = [int(one) for one in told.split("-")]
    last = [*first[:-1], first[-1] + 1]
    if len(first) == 2 and last[1] == 13:
        last = [first[0] + 1, 1]
    first, last = ([*one, 1, 1][:3] for one in (first, last))
    if sign in ("=", "like", ">=", ">"):
        yield f">= {_day(last if sign == '>' else first)}"
    if sign in ("=", "like", "<=", "<"):
        yield f"< {_day(first if sign == '<' else last)}"


def _day(parts: Sequence[int]) -> str:
    return str(date(parts[0], parts[1], 1) + timedelta(days=parts[2] - 1))
