"""Recipes of variants as plain data: takes parts of them to make counterexamples small."""

from collections.abc import Iterator, Mapping
from random import Random

from eval_pipeline.core.model import Json
from eval_pipeline_plugins.tracks.pandas_code.variants.inside.parts import part

_TRIES_OF_A_SIZE = 3
_SIZES = (1, 2, 3, 5, 8)


def row_count(tables: Mapping[str, Json]) -> int:
    """Returns the total number of rows in a variant's tables."""
    return sum(len(recipe["rows"]) for recipe in tables.values())


def smaller(tables: Mapping[str, Json], seed: int) -> Iterator[dict[str, Json]]:
    """Yields variants with a few rows of each table, the smallest first."""
    rng = Random(seed)
    for size in _SIZES:
        for _ in range(_TRIES_OF_A_SIZE):
            yield {name: part(recipe, _drawn(len(recipe["rows"]), size, rng)) for name, recipe in tables.items()}


def _drawn(rows: int, size: int, rng: Random) -> list[int]:
    return rng.sample(range(rows), min(rows, size))
