"""Scores of BIRD, Spider and defog written once more, from their definitions and as plainly as can be."""

from collections import Counter
from itertools import permutations
from typing import Any

import pandas as pd

Rows = list[tuple[Any, ...]]


def bird_ex_reference(mine: Rows, theirs: Rows) -> float:
    """By the definition: the sets of rows are equal."""
    return float(set(mine) == set(theirs))


def spider_reference(mine: Rows, theirs: Rows, ordered: bool) -> float:
    """By the definition: every order of the columns is tried, after the evaluator's quick rejection."""
    if not mine and not theirs:
        return 1.0
    if len(mine) != len(theirs) or len(mine[0]) != len(theirs[0]):
        return 0.0
    bags = [[sorted(row, key=lambda x: str(x) + str(type(x))) for row in rows] for rows in (mine, theirs)]
    if ordered and bags[0] != bags[1]:
        return 0.0
    for order in permutations(range(len(mine[0]))):
        moved = [tuple(row[place] for place in order) for row in mine]
        if moved == theirs or (not ordered and Counter(moved) == Counter(theirs)):
            return 1.0
    return 0.0


def bird_f1_reference(mine: Rows, theirs: Rows) -> float:
    """By the definition: a list of match, generated-only and expected-only shares for each position."""
    if not mine and not theirs:
        return 1.0
    mine, theirs = list(dict.fromkeys(mine)), list(dict.fromkeys(theirs))
    shares = []
    for index in range(max(len(mine), len(theirs))):
        if index >= len(mine):
            shares.append((0.0, 0.0, 1.0))
        elif index >= len(theirs):
            shares.append((0.0, 1.0, 0.0))
        else:
            own, other = mine[index], theirs[index]
            counts = (
                len([cell for cell in own if cell in other]),
                len([cell for cell in own if cell not in other]),
                len([cell for cell in other if cell not in own]),
            )
            shares.append(tuple(count / len(other) for count in counts))
    tp, fp, fn = (sum(column) for column in zip(*shares, strict=True))
    return 2 * tp / (2 * tp + fp + fn) if tp else 0.0


def defog_reference(mine: Rows, theirs: Rows, ordered: bool) -> float:
    """By the definition, in pandas: the columns that match as sorted series, then the frames without duplicates."""
    if not theirs:
        return float(not mine)
    if not mine:
        return 0.0
    super_frame, sub = (pd.DataFrame(rows, dtype=float) for rows in (mine, theirs))
    left, matched = list(super_frame.columns), []
    for name in sub.columns:
        wanted = sub[[name]].sort_values(by=name)
        found = [one for one in left if _equal(super_frame[[one]].sort_values(by=one).set_axis([name], axis=1), wanted)]
        if not found:
            return 0.0
        left.remove(found[0])
        matched.append(found[0])
    frames = [super_frame[matched].set_axis(list(sub.columns), axis=1), sub]
    return float(_equal(_normal(frames[0], ordered), _normal(frames[1], ordered)))


def _equal(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    """As the evaluator does, with the tolerance that pandas has by itself: 1e-5 relative, 1e-8 absolute."""
    try:
        pd.testing.assert_frame_equal(one.reset_index(drop=True), other.reset_index(drop=True), check_dtype=False)
    except AssertionError:
        return False
    return True


def _normal(frame: pd.DataFrame, ordered: bool) -> pd.DataFrame:
    frame = frame.drop_duplicates()
    by = list(frame.columns)
    if ordered:
        rising = [name for name in by if frame[name].is_monotonic_increasing]
        by = rising + [name for name in by if name not in rising] if rising else []
    return (frame.sort_values(by=by) if by else frame).reset_index(drop=True)
