"""Builds a variant of tables from its recipe.

A recipe says for each table which rows of the original table are used, and which cells come from other rows or are new:

    {"rows": [position, ...], "cells": {column: [[row, position], ...]}, "values": {column: [[row, literal], ...]}}
"""

from typing import Any

import numpy as np
import pandas as pd

Recipe = dict[str, Any]
Tables = dict[str, pd.DataFrame]


def build(tables: Tables, recipes: dict[str, Recipe]) -> Tables:
    """Returns the tables of a variant, with the columns and dtypes of the original tables.

    A table without a recipe is not changed.
    """
    return {name: build_table(frame, recipes[name]) if name in recipes else frame for name, frame in tables.items()}


def build_table(frame: pd.DataFrame, recipe: Recipe) -> pd.DataFrame:
    """Returns one table of a variant."""
    rows = np.array(recipe["rows"], dtype=np.intp)
    built = frame.take(rows)
    if isinstance(frame.index, pd.RangeIndex):
        built.index = pd.RangeIndex(len(rows))
    for column in changed_columns(recipe):
        built[column] = _column(frame[column], rows, recipe, column).set_axis(built.index)
    return built


def changed_columns(recipe: Recipe) -> list[str]:
    """Returns the columns in which some cells do not come from their own row."""
    return sorted({column for part in ("cells", "values") for column in recipe.get(part, {})})


def _column(given: pd.Series, rows: Any, recipe: Recipe, column: str) -> pd.Series:
    positions = rows.copy()
    for row, position in recipe.get("cells", {}).get(column, ()):
        positions[row] = position
    values = given.take(positions).copy()
    for row, literal in recipe.get("values", {}).get(column, ()):
        values.iloc[row] = literal_value(literal)
    return values


def literal_value(literal: Any) -> Any:
    """Returns the value that a literal of a recipe stands for."""
    return pd.Timestamp(literal["v"]) if isinstance(literal, dict) else literal


def shuffled(tables: Tables, seed: int) -> Tables:
    """Returns the tables with their rows in another order."""
    return {
        name: frame.take(np.random.default_rng([seed, place]).permutation(len(frame))).reset_index(drop=True)
        for place, (name, frame) in enumerate(tables.items())
    }


def turned(tables: Tables) -> Tables:
    """Returns the tables with their rows in the opposite order."""
    return {name: frame.iloc[::-1].reset_index(drop=True) for name, frame in tables.items()}
