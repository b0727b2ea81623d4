"""Recipes of variants as plain data: takes parts of them to make counterexamples small."""

from collections.abc import Collection, Iterator, Mapping
from random import Random

from eval_pipeline.core.model import Json

_TRIES_OF_A_SIZE = 3
_SIZES = (1, 2, 3, 5, 8)


def row_count(tables: Mapping[str, Json]) -> int:
    """Returns the total number of rows in a variant's tables."""
    return sum(len(recipe["rows"]) for recipe in tables.values())


def part(recipe: Json, kept: Collection[int]) -> Json:
    """Returns the recipe of a table with only some of its rows."""
    order = sorted(kept)
    place_of = {row: place for place, row in enumerate(order)}
    found = dict(recipe, rows=[recipe["rows"][row] for row in order])
    for name in ("cells", "values"):
        if name in recipe:
            found[name] = {
                column: [[place_of[row], value] for row, value in cells if row in place_of]
                for column, cells in recipe[name].items()
            }
    return found


def smaller(tables: Mapping[str, Json], seed: int) -> Iterator[dict[str, Json]]:
    """Yields variants with a few rows of each table, the smallest first."""
    rng = Random(seed)
    for size in _SIZES:
        for _ in range(_TRIES_OF_A_SIZE):
            yield {name: part(recipe, _drawn(len(recipe["rows"]), size, rng)) for name, recipe in tables.items()}


def _drawn(rows: int, size: int, rng: Random) -> list[int]:
    return rng.sample(range(rows), min(rows, size))
