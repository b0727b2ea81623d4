"""A variant that is being built: which rows and cells each of its tables takes."""

from typing import Any

import numpy as np
import pandas as pd

from eval_pipeline_plugins.tracks.pandas_code.variants.inside.building import Recipe, literal_value
from eval_pipeline_plugins.tracks.pandas_code.variants.inside.facts import Facts, RowCondition


class Sketch:
    """A table of a variant while it is being built.

    Attributes:
        rows: for each row, the position in the original table of the row that it copies.
    """

    def __init__(self, facts: Facts, rows: Any) -> None:
        self.facts = facts
        self.rows = [int(row) for row in rows]
        self._cells: dict[str, dict[int, int]] = {}
        self._values: dict[str, dict[int, Any]] = {}

    def copy_cells(self, row: int, columns: list[str], position: int) -> None:
        """Takes the cells of a row in these columns from another row of the original table."""
        if self.facts.editable(columns):
            for column in columns:
                self._cells.setdefault(column, {})[row] = int(position)
                self._values.get(column, {}).pop(row, None)

    def set_value(self, row: int, column: str, literal: Any) -> None:
        """Sets a cell to a new value; in a unique column, only to one that no other row has."""
        if self.facts.editable([column]) or self._is_new(column, literal):
            self._values.setdefault(column, {})[row] = literal

    def _is_new(self, column: str, literal: Any) -> bool:
        known = self.facts.frame[column].take(self.rows)
        return literal not in self._values.get(column, {}).values() and not known.eq(literal_value(literal)).any()

    def flip(self, row: int, condition: RowCondition, holds: bool, rng: np.random.Generator) -> None:
        """Makes a condition true or false for a row, by cells of another row for which it is."""
        donors = condition.donors(holds)
        if len(donors):
            self.copy_cells(row, condition.columns, rng.choice(donors))

    def at_boundary(self, row: int, condition: RowCondition, rng: np.random.Generator) -> None:
        """Puts a row at the boundary of a condition."""
        literal = bool(condition.literals) and (not condition.near or rng.random() < 0.6)
        if literal:
            self.set_value(row, condition.columns[0], condition.literals[rng.integers(len(condition.literals))])
        elif condition.near:
            self.copy_cells(row, condition.columns, rng.choice(condition.near))

    def position(self, row: int, column: str) -> int:
        """Returns the position, in the original table, of the row from which a cell is taken."""
        return self._cells.get(column, {}).get(row, self.rows[row])

    def key_values(self, column: str) -> pd.Series:
        """Returns a column's values without newly set ones: those that come from the original table."""
        positions = [self.position(row, column) for row in range(len(self.rows))]
        return self.facts.frame[column].take(positions)

    def recipe(self, rng: np.random.Generator) -> Recipe:
        """Returns the table's recipe, with its rows in random order."""
        order = [int(place) for place in rng.permutation(len(self.rows))]
        place_of = {row: place for place, row in enumerate(order)}
        parts = {
            "cells": {c: [[place_of[r], p] for r, p in sorted(m.items())] for c, m in self._cells.items() if m},
            "values": {c: [[place_of[r], v] for r, v in sorted(m.items())] for c, m in self._values.items() if m},
        }
        return {"rows": [self.rows[row] for row in order], **{name: part for name, part in parts.items() if part}}
