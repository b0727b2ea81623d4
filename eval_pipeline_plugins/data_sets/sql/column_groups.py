"""Expands defog's notation for accepted queries: alternatives separated by `;`, and groups of columns `{a, b}`.

Of a group, at least one column must be selected, and any selection in order is right. A later `{}` stands for the same
columns, as in `SELECT {u.id, u.name}, count(*) FROM u GROUP BY {}`.
"""

import re
from collections.abc import Iterator
from itertools import combinations

MOST = 1000
"""The most queries that one notation may stand for."""
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_ALIAS = re.compile(r"\s+AS\s+\S+$", re.IGNORECASE)


def accepted_queries(notation: str) -> list[str]:
    """Returns every query that the notation accepts, in order and without duplicates.

    Raises:
        ValueError: a brace has no partner, a group has an empty column, `{}` has no group before it, or the notation
            stands for more than `MOST` queries.
    """
    found: dict[str, None] = {}
    for alternative in _split(notation, ";"):
        for query in _expanded(alternative, None) if alternative else ():
            found[query] = None
            if len(found) > MOST:
                raise ValueError(f"the groups of columns stand for more than {MOST} queries")
    return list(found)


def _expanded(text: str, chosen: tuple[str, ...] | None) -> Iterator[str]:
    """Yields the text with its groups replaced in every way; `chosen` are the columns chosen for the previous group."""
    masked = _masked(text)
    start = masked.find("{")
    end = masked.find("}")
    if start < 0 and end < 0:
        yield text
        return
    if start < 0 or end < start or "{" in masked[start + 1 : end]:
        raise ValueError(f"a brace has no partner in '{text[:80]}'")
    before, inside, after = text[:start], text[start + 1 : end], text[end + 1 :]
    for columns in _choices(inside, chosen):
        repeated = not inside.strip()
        written = ", ".join(_ALIAS.sub("", column) if repeated else column for column in columns)
        yield from (f"{before}{written}{rest}" for rest in _expanded(after, columns))


def _choices(inside: str, chosen: tuple[str, ...] | None) -> Iterator[tuple[str, ...]]:
    if not inside.strip():
        if chosen is None:
            raise ValueError("'{}' stands for the columns of a group before it, and there is none")
        yield chosen
        return
    columns = _split(inside, ",")
    if not all(columns):
        raise ValueError(f"a column is missing in {{{inside}}}")
    for size in range(1, len(columns) + 1):
        yield from combinations(columns, size)


def _split(text: str, mark: str) -> list[str]:
    """Splits a text at marks outside quotes and parentheses, and strips the parts."""
    parts, depth, begin = [], 0, 0
    for place, character in enumerate(_masked(text)):
        depth += (character == "(") - (character == ")")
        if character == mark and (depth <= 0 or mark == ";"):
            parts.append(text[begin:place].strip())
            begin = place + 1
    return [*parts, text[begin:].strip()]


def _masked(text: str) -> str:
    """Returns the text with quoted parts blanked out, so that all positions stay the same."""
    return _QUOTED.sub(lambda found: " " * len(found.group()), text)
