"""Making a counterexample small: rows are taken away as long as the queries still differ."""

import time
from collections.abc import Callable

from eval_pipeline.sql_equivalence.generated.references import GeneratedDatabase, References

_MOST_TRIES = 80


def shrunk(
    references: References, database: GeneratedDatabase, differ: Callable[[GeneratedDatabase], bool], stop: float
) -> GeneratedDatabase:
    """A smaller database on which `differ` still holds, constraints kept; the same one where none is found.

    Args:
        references: which every database keeps.
        database: rows; not changed.
        differ: whether the queries differ on a database.
        stop: `time.monotonic()` after which nothing more is tried.
    """
    tries = 0
    share = 2
    best = database
    while True:
        smaller = None
        for name, rows in best.items():
            size = max(len(rows) // share, 1)
            for start in range(0, len(rows), size):
                if tries >= _MOST_TRIES or time.monotonic() > stop:
                    return best
                tries += 1
                without = {**best, name: rows[:start] + rows[start + size :]}
                candidate = references.repaired(without)
                if differ(candidate):
                    smaller = candidate
                    break
            if smaller is not None:
                break
        if smaller is not None:
            best = smaller
        elif share < max(map(len, best.values()), default=0):
            share *= 4
        else:
            return best
