"""Makes variants in which something computed is exactly at the edge with which the gold code compares it.

The gap between both is a function of the cells. One cell after the other is changed, within the values that its column
has, by as much as would close the gap if it were linear, as it is for sums, means and differences of dates. Numbers
of rows come to an edge as rows are left out.
"""

from typing import Any

import numpy as np
import pandas as pd

from eval_pipeline_plugins.tracks.pandas_code.variants.inside.building import Recipe, Tables, build
from eval_pipeline_plugins.tracks.pandas_code.variants.inside.choosing import Rng
from eval_pipeline_plugins.tracks.pandas_code.variants.inside.facts import Facts, Hints, evaluated, moment_literal

_MOST_TRIED = 24
_PROBED = 6
_AT_ONCE = 40
_LEAST_RANGE = 4
_ONE_DAY = pd.Timedelta(days=1)
_DAY_S = 86_400


class Edge:
    """Tables of a variant on the way to an edge.

    Args:
        tables: the original tables.
        rows: for each table, the positions of the rows to begin with; those of the first may be left out.
        facts: facts about each table.
        hint: the condition, with its `gap`.
        keys: columns whose values are not changed, as they say which rows belong together.
        rng: random number generator.
    """

    def __init__(
        self, tables: Tables, rows: dict[str, list[int]], facts: list[Facts], hint: Hints, keys: set[str], rng: Rng
    ) -> None:
        self._facts = {one.name: one for one in facts}
        self._gap_text, self._rng, self._tried = hint["gap"], rng, 0
        self._rows = {name: np.array(positions) for name, positions in rows.items()}
        self._tables = build(tables, {name: {"rows": positions} for name, positions in rows.items()})
        self._changed: set[tuple[str, str]] = set()
        self._keys = {column for column in keys if column in hint["columns"]}
        self._free = [
            (one.name, column)
            for one in facts
            for column in one.frame.columns
            if column in hint["columns"] and column not in keys and _is_measured(one.frame[column])
        ]
        for place in self._free:
            self._round(*place)
        self._gap = self._measured()

    def is_reached(self) -> bool:
        """Changes cells, or leaves out rows, until something is at the edge; returns whether it is."""
        if self._gap.empty:
            return False
        order = self._rng.permutation(len(self._free))
        return bool((self._gap == 0).any()) or any(self._is_moved(*self._free[n]) for n in order) or self._is_thinned()

    def has_both_sides(self) -> bool:
        """Whether of several values some are above and some below the edge."""
        return len(self._gap) == 1 or bool((self._gap > 0).any() and (self._gap < 0).any())

    def recipes(self) -> dict[str, Recipe]:
        """Returns the recipe of each table."""
        found: dict[str, Recipe] = {name: {"rows": rows.tolist()} for name, rows in self._rows.items()}
        for name, column in sorted(self._changed):
            values, given = self._tables[name][column], self._facts[name].frame[column].take(self._rows[name])
            places = np.flatnonzero((values.to_numpy() != given.to_numpy()) & values.notna().to_numpy())
            told = [[int(place), _literal(values.iloc[place])] for place in places]
            found[name].setdefault("values", {})[column] = told
        return found

    def _measured(self) -> pd.Series:
        self._tried += 1
        return gaps(self._gap_text, self._tables)

    def _round(self, name: str, column: str) -> None:
        """Rounds numbers with decimals such that sums of them are exact in any order."""
        values, given = self._tables[name][column], self._facts[name].frame[column]
        if pd.api.types.is_float_dtype(values.dtype) and not (given.dropna() % 1 == 0).all():
            low, high = given.min(), given.max()
            unit = 0.25 if high - low > _LEAST_RANGE else 1 / 64
            rounded = (values / unit).round() * unit
            self._tables[name][column] = rounded.mask(rounded < low, rounded + unit).mask(
                rounded > high, rounded - unit
            )
            self._changed.add((name, column))

    def _is_moved(self, name: str, column: str) -> bool:
        """Changes cells of a column until there is no gap; returns whether that is so."""
        values = self._tables[name][column]
        rows = np.flatnonzero(values.notna())
        at_once = _AT_ONCE if values.dtype in ("int64", "float64") else 1
        order = rows[np.argsort(values.iloc[rows].to_numpy(), kind="stable")]
        # A least or largest value is that of few rows, so these are looked at too.
        for row in [*self._rng.permutation(rows)[:_PROBED], *order[:1], *order[-1:]]:
            slopes = self._responses(name, column, {int(row): 1})
            if slopes.empty:
                continue
            label: Any = (self._gap / slopes).abs().idxmin()
            others = order if row == order[0] else order[::-1] if row == order[-1] else self._rng.permutation(rows)
            tried = [int(row), *(int(one) for one in others if one != row)]
            for start in range(0, len(tried), at_once):
                if self._tried >= _MOST_TRIED:
                    return False
                self._fill(name, column, tried[start : start + at_once], label, float(slopes[label]))
                if self._gap[label] == 0:
                    return True
        return False

    def _responses(self, name: str, column: str, steps: dict[int, int]) -> pd.Series:
        """Returns by how much gaps change if cells change by steps; only those that do."""
        before, unit = self._tables[name][column], self._unit(name, column)
        self._set(name, column, {row: before.iloc[row] + step * unit for row, step in steps.items()})
        changed = (self._measured() - self._gap).dropna()
        self._tables[name][column] = before
        return changed[changed != 0]

    def _fill(self, name: str, column: str, rows: list[int], label: Any, slope: float) -> None:
        """Changes cells on which a gap depends as far as that closes it, and their column has such values."""
        if len(rows) > 1:  # each cell changes by another power of two, so the sum says which of them count
            changed = self._responses(name, column, {row: 2**place for place, row in enumerate(rows)})
            bits = round(changed.get(label, 0) / slope)
            rows = [row for place, row in enumerate(rows) if bits >> place & 1]
        given, unit, left = self._facts[name].frame[column], self._unit(name, column), -self._gap[label] / slope
        low, high, before, values = given.min(), given.max(), self._tables[name][column], {}
        for row in rows:
            value = min(max(_moved(before.iloc[row], left, given, unit), low), high)
            if value != before.iloc[row] and (column not in self._facts[name].unique or not (before == value).any()):
                values[row] = value
                left -= (value - before.iloc[row]) / unit
        self._set(name, column, values)
        if values and self._is_nearer(label):
            self._changed.add((name, column))
        else:
            self._tables[name][column] = before

    def _unit(self, name: str, column: str) -> Any:
        return _ONE_DAY if pd.api.types.is_datetime64_any_dtype(self._tables[name][column].dtype) else 1

    def _is_thinned(self) -> bool:
        """Leaves out rows, also all of a group with the same value, until a gap is closed; returns whether one is."""
        name = next(iter(self._rows))
        given, kept, above = self._tables[name], np.ones(len(self._rows[name]), bool), self._gap[self._gap > 0]
        if above.empty or len(self._gap) == len(given):
            return False
        label: Any = above.idxmin()
        self._tried = 0
        keys = [column for column in given.columns if column in self._keys]
        alike = [rows for n, c in self._free if n == name for rows in given.groupby([*keys, c]).indices.values()]
        some = [alike[place] for place in self._rng.permutation(len(alike))[:_PROBED]]
        for rows in [*some, *self._rng.permutation(len(given))]:
            if self._tried >= _MOST_TRIED:
                return False
            before = kept.copy()
            kept[rows] = False
            self._tables[name] = given[kept].reset_index(drop=True)
            gap = self._measured()
            if (gap == 0).any():
                self._rows[name] = self._rows[name][kept]
                return True
            if label not in gap.index or not 0 <= gap[label] <= self._gap[label]:
                kept = before
            else:
                self._gap = gap
        return False

    def _is_nearer(self, label: Any) -> bool:
        """Measures again; returns whether it is nearer to the edge, and keeps the gaps if so."""
        gap = self._measured()
        if label not in gap.index or abs(gap[label]) >= abs(self._gap[label]):
            return False
        self._gap = gap
        return True

    def _set(self, name: str, column: str, values: dict[int, Any]) -> None:
        if values:
            changed = self._tables[name][column].copy()
            changed.iloc[[*values]] = [*values.values()]
            self._tables[name][column] = changed


def gaps(text: str, tables: Tables) -> pd.Series:
    """Returns by how much something is above what it is compared with, in numbers or days; empty if unknown."""
    value = evaluated(text, tables)
    found: Any = value if isinstance(value, pd.Series) else pd.Series([value])
    if pd.api.types.is_timedelta64_dtype(found.dtype):
        found = found.dt.total_seconds() / _DAY_S
    if not pd.api.types.is_numeric_dtype(found.dtype) or not found.index.is_unique:
        return pd.Series(dtype=float)
    numbers: pd.Series = found.astype(float).dropna()
    return numbers


def _is_measured(values: pd.Series) -> bool:
    """Whether cells of a column can be changed by an amount."""
    dtype = values.dtype
    number = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
    return number or pd.api.types.is_datetime64_any_dtype(dtype)


def _moved(before: Any, steps: float, given: pd.Series, unit: Any) -> Any:
    """Returns a value that is moved by steps, as far as its column can have it."""
    if isinstance(unit, pd.Timedelta):
        whole = (given.dropna() == given.dropna().dt.normalize()).all()
        return before + (round(steps) * unit if whole else pd.Timedelta(microseconds=round(steps * _DAY_S * 10**6)))
    whole = pd.api.types.is_integer_dtype(given.dtype) or (given.dropna() % 1 == 0).all()
    return before + (round(steps) if whole else steps)


def _literal(value: Any) -> Any:
    """Returns what stands for a value in a recipe."""
    return moment_literal(value) if isinstance(value, pd.Timestamp) else value.item()
