"""Builds a variant of tables from its recipe.

A recipe says for each table which rows of the original table are used, and which cells come from other rows or are new:

    {"rows": [position, ...], "cells": {column: [[row, position], ...]}, "values": {column: [[row, literal], ...]}}
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

Recipe = dict[str, Any]
Tables = dict[str, pd.DataFrame]


def build(tables: Tables, recipes: dict[str, Recipe]) -> Tables:
    """Returns the tables of a variant, with the columns and dtypes of the original tables.

    A table without a recipe is not changed.
    """
    return next(build_all(tables, [recipes]))


def build_all(tables: Tables, variants: Sequence[dict[str, Recipe]]) -> Iterator[Tables]:
    """Yields the tables of each variant, as `build` does; each of the variants must be one that can be built alone."""
    parts = {name: _taken(frame, [one[name] for one in variants if name in one]) for name, frame in tables.items()}
    for recipes in variants:
        yield {name: next(parts[name]) if name in recipes else frame for name, frame in tables.items()}


def build_table(frame: pd.DataFrame, recipe: Recipe) -> pd.DataFrame:
    """Returns one table of a variant."""
    return next(_taken(frame, [recipe]))


def _taken(frame: pd.DataFrame, recipes: list[Recipe]) -> Iterator[pd.DataFrame]:
    """Yields a table by each recipe; its rows are part of one table, as taking many rows costs little more than few."""
    starts = np.cumsum([0, *(len(recipe["rows"]) for recipe in recipes)]).tolist()
    rows = np.array([row for recipe in recipes for row in recipe["rows"]], dtype=np.intp)
    built, is_numbered = frame.take(rows), isinstance(frame.index, pd.RangeIndex)
    if is_numbered:
        built.index = pd.RangeIndex(len(rows))
    for column in sorted({column for recipe in recipes for column in changed_columns(recipe)}):
        values = _column(frame[column], rows, [*zip(starts, recipes, strict=False)], column)
        built[column] = values.set_axis(built.index)
    for start, end in pairwise(starts):
        part = built if len(recipes) == 1 else built.iloc[start:end]
        if is_numbered:
            part.index = pd.RangeIndex(end - start)
        yield part


def changed_columns(recipe: Recipe) -> list[str]:
    """Returns the columns in which some cells do not come from their own row."""
    return sorted({column for part in ("cells", "values") for column in recipe.get(part, {})})


def _column(given: pd.Series, rows: Any, recipes: list[tuple[int, Recipe]], column: str) -> pd.Series:
    """Returns a column of the tables of several recipes, each with its first row."""
    positions = rows.copy()
    for start, recipe in recipes:
        for row, position in recipe.get("cells", {}).get(column, ()):
            positions[start + row] = position
    values = given.take(positions)
    for start, recipe in recipes:
        for row, literal in recipe.get("values", {}).get(column, ()):
            values.iloc[start + row] = literal_value(literal)
    return values


def literal_value(literal: Any) -> Any:
    """Returns the value that a literal of a recipe stands for."""
    return pd.Timestamp(literal["v"]) if isinstance(literal, dict) else literal


def shuffled(tables: Tables, seed: int) -> Tables:
    """Returns the tables with their rows in another order."""
    return {
        name: _numbered(frame.take(np.random.default_rng([seed, place]).permutation(len(frame))))
        for place, (name, frame) in enumerate(tables.items())
    }


def turned(tables: Tables) -> Tables:
    """Returns the tables with their rows in the opposite order."""
    return {name: _numbered(frame.iloc[::-1]) for name, frame in tables.items()}


def _numbered(frame: pd.DataFrame) -> pd.DataFrame:
    """Gives the rows of a new table their numbers, which is faster than `reset_index`."""
    frame.index = pd.RangeIndex(len(frame))
    return frame
