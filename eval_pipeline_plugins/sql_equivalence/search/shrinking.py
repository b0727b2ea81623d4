"""Makes a counterexample small by removing rows as long as the queries still differ."""

from collections.abc import Callable

from eval_pipeline_plugins.sql_equivalence.generated.references import GeneratedDatabase, References

_MOST_TRIES = 80


def shrunk(
    references: References, database: GeneratedDatabase, differ: Callable[[GeneratedDatabase], bool]
) -> GeneratedDatabase:
    """Returns a smaller database on which `differ` still holds and all constraints hold; the same one if there is none.

    Args:
        references: foreign keys that every database satisfies.
        database: rows; not changed.
        differ: whether the queries differ on a database.
    """
    tries = 0
    share = 2
    best = database
    while True:
        smaller = None
        for name, rows in best.items():
            size = max(len(rows) // share, 1)
            for start in range(0, len(rows), size):
                if tries >= _MOST_TRIES:
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
