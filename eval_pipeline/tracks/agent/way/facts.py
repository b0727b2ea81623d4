"""What a call computes, as plain facts that are the same in SQL and in Python: conditions, aggregates, factors."""

import re
from collections import Counter
from collections.abc import Iterator
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
