"""Correctness as defog counts it (defog-ai/sql-eval, eval/eval.py): additional columns are allowed."""

import re
from collections.abc import Sequence
from itertools import pairwise
from math import isclose
from typing import Any

from eval_pipeline_plugins.tracks.sql.metrics.published import Rows

_ASKS_FOR_ORDER = re.compile(r"\b(order|sort|arrange)\b", re.IGNORECASE)


def asks_for_order(question: str, tags: Sequence[str]) -> bool:
    """Returns whether the order of rows counts: by defog's category `order_by`, or by a word of the question."""
    return "order_by" in tags or _ASKS_FOR_ORDER.search(question) is not None


def has_columns(generated: Rows, expected: Rows, names: Sequence[str], ordered: bool) -> float:
    """Returns 1.0 if the generated result has the expected one as a subset of its columns.

    Each expected column takes the first unused generated column with the same values, then the rows of these columns
    are compared, without repetitions. An empty expected result needs an empty one of the same width.

    Args:
        generated: rows.
        expected: rows.
        names: names of the expected columns, in whose alphabetical order rows are sorted.
        ordered: see `asks_for_order`. Rows are then sorted by the columns that are in ascending order already, if any.
    """
    if not expected:
        return float(not generated)
    if len(generated) != len(expected):
        return 0.0
    rest, matched = list(range(len(generated[0]))), []
    for place in range(len(expected[0])):
        wanted = sorted((row[place] for row in expected), key=_key)
        found = next((one for one in rest if _same(sorted((row[one] for row in generated), key=_key), wanted)), None)
        if found is None:
            return 0.0
        rest.remove(found)
        matched.append(found)
    by_name = sorted(range(len(matched)), key=lambda place: names[place])
    mine = _normalised([tuple(row[matched[place]] for place in by_name) for row in generated], ordered)
    theirs = _normalised([tuple(row[place] for place in by_name) for row in expected], ordered)
    return float(len(mine) == len(theirs) and all(_same(*rows) for rows in zip(mine, theirs, strict=True)))


def _normalised(rows: Rows, ordered: bool) -> Rows:
    found, places = list(dict.fromkeys(rows)), list(range(len(rows[0])))
    if ordered:
        rising = [place for place in places if _is_rising([_key(row[place]) for row in found])]
        if not rising:
            return found
        places = [*rising, *(place for place in places if place not in rising)]
    return sorted(found, key=lambda row: [_key(row[place]) for place in places])


def _is_rising(keys: Sequence[Any]) -> bool:
    return all(one <= other for one, other in pairwise(keys))


def _key(cell: Any) -> tuple[bool, bool, float, str]:
    """Returns what cells are sorted by: numbers, then texts, then NULL."""
    number = isinstance(cell, int | float)
    return cell is None, not number, cell if number else 0.0, "" if number else str(cell)


def _same(mine: Sequence[Any], theirs: Sequence[Any]) -> bool:
    return len(mine) == len(theirs) and all(
        isclose(one, other, rel_tol=1e-5, abs_tol=1e-8)
        if isinstance(one, float | int) and isinstance(other, float | int)
        else one == other
        for one, other in zip(mine, theirs, strict=True)
    )
