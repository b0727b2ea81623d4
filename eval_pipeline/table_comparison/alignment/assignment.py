"""Matches the rows of two tables so that matched rows have the most cells in common."""

from collections.abc import Collection, Hashable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Bag = Collection[tuple[Hashable, int]]
"""The distinct cells of a row, each with its number."""


def most_in_common(rows: Sequence[Bag], others: Sequence[Bag]) -> int:
    """Returns the most cells that rows have in common with others, if each row is matched with at most one other."""
    if not rows or not others:
        return 0
    shared = _shared(rows, others)
    return _largest_sum(shared if len(rows) <= len(others) else shared.T)


def _shared(rows: Sequence[Bag], others: Sequence[Bag]) -> "NDArray[np.int64]":
    """Returns the numbers of cells that each row has in common with each of the others."""
    import numpy as np

    listed: dict[Hashable, tuple[list[int], list[int]]] = {}
    for place, bag in enumerate(others):
        for cell, count in bag:
            places, counts = listed.setdefault(cell, ([], []))
            places.append(place)
            counts.append(count)
    having = {cell: (np.array(places), np.array(counts)) for cell, (places, counts) in listed.items()}
    found = np.zeros((len(rows), len(others)), np.int64)
    for row, bag in zip(found, rows, strict=True):
        for cell, count in bag:
            if cell in having:
                places_, counts_ = having[cell]
                row[places_] += np.minimum(counts_, count)
    return found


def _largest_sum(weights: "NDArray[np.int64]") -> int:
    """Returns the largest sum of weights with one from each row, no two of them in one column.

    Shortest augmenting paths (Jonker and Volgenant 1987, Computing 38) on integers, hence exact. scipy has the same,
    but nothing else here needs its 140 MB.

    Args:
        weights: non-negative; not more rows than columns.
    """
    import numpy as np

    costs = weights.max() - weights
    of_rows, of_columns = costs.min(axis=1), np.zeros(costs.shape[1], np.int64)  # dual variables
    row_at = np.full(costs.shape[1], -1)
    left = []
    for row, cost in enumerate(costs):
        free = np.flatnonzero((cost == of_rows[row]) & (row_at < 0))
        if free.size:
            row_at[free[0]] = row
        else:
            left.append(row)
    for row in left:
        _augment(row, costs, of_rows, of_columns, row_at)
    taken = np.flatnonzero(row_at >= 0)
    return int(weights[row_at[taken], taken].sum())


def _augment(
    start: int,
    costs: "NDArray[np.int64]",
    of_rows: "NDArray[np.int64]",
    of_columns: "NDArray[np.int64]",
    row_at: "NDArray[np.int64]",
) -> None:
    """Gives a further row a column by the shortest path of exchanges, and updates the dual variables."""
    import numpy as np

    far = np.iinfo(np.int64).max
    distances, before = np.full(len(row_at), far), np.full(len(row_at), -1)
    waiting = np.ones(len(row_at), bool)
    row, column, length = start, -1, 0
    while True:
        onward = length + costs[row] - of_rows[row] - of_columns
        nearer = waiting & (onward < distances)
        distances[nearer], before[nearer] = onward[nearer], column
        length = int(distances[waiting].min())
        nearest = np.flatnonzero(waiting & (distances == length))
        free = nearest[row_at[nearest] < 0]
        if free.size:
            break
        column = int(nearest[0])
        waiting[column] = False
        row = int(row_at[column])
    seen = ~waiting
    of_rows[row_at[seen]] += length - distances[seen]
    of_rows[start] += length
    of_columns[seen] += distances[seen] - length
    column = int(free[0])
    while column >= 0:
        earlier = int(before[column])
        row_at[column] = start if earlier < 0 else row_at[earlier]
        column = earlier
