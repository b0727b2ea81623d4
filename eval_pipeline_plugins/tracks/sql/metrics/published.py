"""Metrics that other benchmarks define, read from the evidence of a turn: BIRD's and defog's, and what all share."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isclose, sqrt
from typing import Any

from eval_pipeline.core.model import MetricResult
from eval_pipeline_plugins.tracks.sql.metrics.tables_read import CHANGES_DATA, NO_SQL, NO_SQL_EXPECTED

Rows = list[tuple[Any, ...]]


def published_result(
    name: str,
    generated: str | None,
    execution: str | None,
    published: Mapping[str, float],
    should_pass: bool,
    changes_data: bool = False,
) -> MetricResult:
    """Returns a score by its name: the best over the accepted queries, 0.0 if there is no result to compare."""
    if not should_pass:
        return MetricResult(None, reason=NO_SQL_EXPECTED)
    if changes_data:
        return MetricResult(None, reason=CHANGES_DATA)
    if generated is None:
        return MetricResult(0.0, reason=NO_SQL)
    if execution == "error":
        return MetricResult(0.0, reason="there are no two results")
    if name not in published:
        return MetricResult(None, reason="not compared")
    return MetricResult(published[name])


# BIRD (github.com/bird-bench/mini_dev: evaluation_ex.py, evaluation_f1.py, evaluation_ves.py).
def same_row_sets(generated: Rows, expected: Rows) -> float:
    """Returns 1.0 if both results have the same set of rows: neither order nor repetition of rows counts.

    The order of columns counts. Values are equal as Python compares them, without a tolerance.
    """
    return float(set(generated) == set(expected))


def positional_f1(generated: Rows, expected: Rows) -> float:
    """Returns the F1 score over cells, where each row is compared with the row at the same position.

    Repeated rows are removed first. A cell is a hit if the other row has an equal cell anywhere. All counts of a pair
    are divided by the width of the expected row; a row without a partner counts as one miss.
    """
    if not generated and not expected:
        return 1.0
    mine, theirs = list(dict.fromkeys(generated)), list(dict.fromkeys(expected))
    hits = 0.0
    extra, missing = float(max(len(mine) - len(theirs), 0)), float(max(len(theirs) - len(mine), 0))
    for own, other in zip(mine, theirs, strict=False):
        found = sum(cell in other for cell in own)
        hits += found / len(other)
        extra += (len(own) - found) / len(other)
        missing += sum(cell not in own for cell in other) / len(other)
    precision = hits / (hits + extra) if hits + extra else 0.0
    recall = hits / (hits + missing) if hits + missing else 0.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


_REWARDS = ((2.0, 1.25), (1.0, 1.0), (0.5, 0.75), (0.25, 0.5))


_SLOWEST = 0.25


def reward(time_ratio: float) -> float:
    """Returns BIRD's reward for the expected query's time divided by the generated query's time."""
    return next((given for least, given in _REWARDS if time_ratio >= least), _SLOWEST)


def r_ves(execution_match: bool | None, time_ratio: float | None, changes_data: bool = False) -> MetricResult:
    """Returns the square root of a right query's reward, so that the mean over turns is BIRD's R-VES.

    0.0 if it is wrong.
    """
    if changes_data:
        return MetricResult(None, reason=CHANGES_DATA)
    if execution_match is None:
        return MetricResult(None, reason="there is no result to compare")
    if not execution_match:
        return MetricResult(0.0, details={"reward": 0.0})
    if time_ratio is None:
        return MetricResult(None, reason="the queries were not timed")
    found = reward(time_ratio)
    return MetricResult(sqrt(found), details={"reward": found, "time_ratio": time_ratio})


# Correctness as defog counts it (defog-ai/sql-eval, eval/eval.py): additional columns are allowed.
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
