"""What a call computes, as plain facts that are the same in SQL and in Python: conditions, aggregates, factors."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Any

from eval_pipeline.core.values import value

ROWS = frozenset({"where", "match", "join", "group", "distinct"})
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
OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "intdiv": "//", "mult": "*", "floordiv": "//", "mod": "%"}
TURNED = {">": "<", "<": ">", ">=": "<=", "<=": ">="}
_LONGEST_NUMBER = 20
_PERIOD = re.compile(
    r"(.+) (=|like|<=|>=|<|>) ((?:19|20)\d\d(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?)[-%]{0,2}"
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


def plainly(facts: Facts) -> Facts:
    """Returns facts in which a number is the same wherever it stands, and a choice whatever its column is called."""
    found: Facts = Facts()
    for one, count in facts.items():
        what = one.what.rpartition(" ")[2] if one.kind == "case" else one.what
        if one.kind == "where" and (period := _PERIOD.fullmatch(what)) is not None:
            for bound in _bounds(period[2], period[3]):
                found[CodeFact("where", f"{period[1]} {bound}")] += count
            continue
        found[CodeFact("number" if one.kind == "factor" else one.kind, what)] += count
    return found


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
