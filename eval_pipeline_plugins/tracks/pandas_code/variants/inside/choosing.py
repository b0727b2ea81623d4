"""Chooses rows of the original tables for a variant: by conditions, by groups, and so that joins find partners."""

import numpy as np
import pandas as pd

from eval_pipeline_plugins.tracks.pandas_code.variants.inside.facts import Facts, Hints

Rng = np.random.Generator
_MOST_KEYS = 8
_RUN = 4


def by_conditions(facts: Facts, count: int, rng: Rng) -> list[int]:
    """Returns rows for which all conditions hold or all but one, rows at boundaries, and some others."""
    size = len(facts.frame)
    truth = facts.truth
    wanted: list[int] = []
    if truth.shape[1]:
        missed = (~truth).sum(axis=1)
        wanted += _some(np.flatnonzero(missed == 0), count // 3, rng)
        for place in range(truth.shape[1]):
            wanted += _some(np.flatnonzero((missed == 1) & ~truth[:, place]), max(2, count // 8), rng)
            wanted += _some(np.array(facts.conditions[place].near, dtype=int), 3, rng)
    wanted += _some(np.arange(size), max(3, count - len(wanted)), rng)
    found = list(dict.fromkeys(wanted))
    return found if count > 1 else found[:1]


def by_group(facts: Facts, column: str, sizes: list[int], rng: Rng) -> list[int]:
    """Returns rows of a few groups; from each group as many as one of the sizes says, if it has them."""
    codes, most_first, counts = facts.coded(column)
    large = most_first[counts[most_first] >= max(sizes)]
    pool = large if len(large) >= len(sizes) else most_first[: max(len(sizes), 3)]
    rows: list[int] = []
    for size, code in zip(sizes, rng.permutation(pool), strict=False):
        rows += _some(np.flatnonzero(codes == code), size, rng)
    return list(dict.fromkeys(rows))


def by_values(facts: Facts, texts: list[str], count: int, rng: Rng) -> list[int]:
    """Returns runs of neighbouring rows that have one of several texts in a column; none if there are no such texts.

    Neighbouring rows mostly belong together, e.g. by their date, so that code which compares two values finds both in a
    run.
    """
    for column in facts.columns:
        values = facts.frame[column]
        if not (pd.api.types.is_string_dtype(values.dtype) or isinstance(values.dtype, pd.CategoricalDtype)):
            continue
        named = values.isin(texts).to_numpy(dtype=bool)
        if values[named].nunique() > 1:
            positions = np.flatnonzero(named)
            starts = rng.integers(max(1, len(positions) - _RUN + 1), size=max(1, count // _RUN))
            places = sorted({int(start) + more for start in starts for more in range(_RUN)})
            return [int(positions[place]) for place in places if place < len(positions)]
    return []


def partners(facts: Facts, others: list[tuple[str, pd.Series]], hints: Hints, count: int, rng: Rng) -> list[int]:
    """Returns rows that match rows already chosen in other tables, and a few that match none.

    Args:
        facts: facts about the table to choose from.
        others: columns of tables whose rows are chosen already, each with its name and values.
        hints: the hints, which say which columns are joined.
        count: maximum number of rows.
        rng: random number generator.
    """
    size = len(facts.frame)
    for left, right in hints["keys"]:
        for mine, theirs in ((left, right), (right, left)):
            known = [values for name, values in others if name == theirs]
            if mine not in facts.frame.columns or not known:
                continue
            matching = facts.frame[mine].isin(list(known[0]))
            inside, outside = np.flatnonzero(matching), np.flatnonzero(~matching)
            return [*_some(inside, count, rng), *_some(outside, 2 + count // 8, rng)]
    return _some(np.arange(size), count, rng)


def narrowed(facts: Facts, rows: list[int], keys: list[str], rng: Rng) -> list[int]:
    """Returns the rows and others with the same join keys, so that joins find several partners."""
    known = [column for column in keys if column in facts.frame.columns and column not in facts.unique]
    if not known:
        return rows
    codes = facts.coded(known[int(rng.integers(len(known)))])[0]
    drawn = [code for code in dict.fromkeys(codes[rows].tolist()) if code >= 0]
    same = np.flatnonzero(np.isin(codes, drawn[:_MOST_KEYS]))
    return list(dict.fromkeys([*rows, *_some(same, len(rows) // 2, rng)]))


def _some(positions: np.ndarray, count: int, rng: Rng) -> list[int]:
    """Returns at most `count` of the positions, drawn at random."""
    if len(positions) <= count:
        return [int(position) for position in positions]
    return [int(position) for position in rng.choice(positions, size=count, replace=False)]
