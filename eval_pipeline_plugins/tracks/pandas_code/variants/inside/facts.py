"""Collects the facts about the original tables that are needed for making variants."""

from collections.abc import Sequence
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from eval_pipeline_plugins.tracks.pandas_code.variants.inside.building import literal_value

Hints = dict[str, Any]
"""What the gold code looks at, by name."""
_NEAREST = 3
_MOST_DONORS = 40
_EXPECTED_PAIRS = 5
_SAMPLED = 1000
_LENGTHS = {"month": pd.DateOffset(months=1), "day": pd.DateOffset(days=1), "hour": pd.Timedelta(hours=1)}
_DAY = {"t": "datetime"}


class Facts:
    """A table, with what the gold code examines in it.

    Attributes:
        columns: columns that the gold code mentions.
        unique: columns whose values are all different; they stay different in a variant, except for measures, i.e.
            numbers with decimals, which may be different by chance.
        together: several columns whose values are different together; they stay so.
        nullable: mentioned columns with missing values; in a variant, only these may have missing values.
        conditions: conditions on this table alone.
        periods: dates whose month, day or the like the gold code looks at.
        groups: mentioned columns by which rows are grouped.
    """

    def __init__(self, name: str, frame: pd.DataFrame, hints: Hints) -> None:
        self.name, self.frame = name, frame
        self.columns = [column for column in frame.columns if column in hints["columns"]]
        declared = [set(columns) for columns in hints["unique"].get(name, ())]
        self.unique = {column for column in frame.columns if len(frame) > 1 and _is_key(frame[column])}
        self.unique |= {column for columns in declared if len(columns) == 1 for column in columns}
        self.nullable = [column for column in self.columns if frame[column].isna().any()]
        self.groups = [column for column in hints["groups"] if column in self.columns and column not in self.unique]
        self.together = [sorted(columns) for columns in declared if len(columns) > 1]
        pairs = combinations([column for column in self.groups if not _is_fraction(frame[column])], 2)
        self.together += [sorted(pair) for pair in pairs if _are_different(frame, pair)]
        self.conditions: list[RowCondition] = []
        self.periods: list[Period] = []
        self._coded: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def editable(self, columns: list[str]) -> bool:
        """Returns whether cells of these columns may be replaced."""
        return not self.unique.intersection(columns)

    @cached_property
    def truth(self) -> np.ndarray:
        """Which conditions hold for which rows, as an array of shape (rows, conditions); used when all are known."""
        return np.array([one.holds for one in self.conditions]).reshape(len(self.conditions), len(self.frame)).T

    def coded(self, column: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns a column as numbers of its values, -1 if missing; the numbers, the most frequent first; and how often
        each occurs.
        """
        if column not in self._coded:
            codes = pd.factorize(self.frame[column])[0]
            counts = np.bincount(codes[codes >= 0])
            self._coded[column] = codes, np.argsort(-counts, kind="stable"), counts
        return self._coded[column]


class RowCondition:
    """A condition of the gold code on the rows of one table.

    Attributes:
        columns: columns that it examines.
        holds: for each row, whether the condition holds.
        near: positions of rows whose value is at the boundary, or just below or above it.
        literals: values at the boundary and close to it; empty unless the condition compares a bare column.
    """

    def __init__(self, columns: list[str], holds: np.ndarray, near: list[int], literals: list[Any]) -> None:
        self.columns, self.holds, self.near, self.literals = columns, holds, near, literals

    def donors(self, holds: bool) -> np.ndarray:
        """Returns positions of rows for which the condition holds, or those for which it does not."""
        return np.flatnonzero(self.holds == holds)


class Period:
    """A date of which the gold code looks at the day, the month or the like, or at a window of time before it.

    Attributes:
        column: the column of the date.
        months: positions of rows whose date is known, one for each month.
    """

    def __init__(self, hint: Hints, given: pd.Series, shown: pd.Series) -> None:
        self.column, self._unit, self._window = hint["columns"][0], hint["unit"], hint["window"]
        self._given, self._shown, self._within = given, shown, (given.min(), given.max())
        some = given.dropna().iloc[:_SAMPLED]
        self._whole = bool((some == some.dt.normalize()).all())
        dates = shown.iloc[:: len(shown) // _SAMPLED + 1].dropna()
        self.months = [int(row) for row in dates.index[~(dates.dt.year * 12 + dates.dt.month).duplicated()]]

    def edges(self, rows: Sequence[int], unit: str = "") -> pd.Series:
        """Returns the first and the last moments of the month, day and hour of rows' dates, or of what counts of these,
        or the ends of the windows after them, as far as they are within the values of the column.

        Args:
            rows: positions of rows.
            unit: what counts; empty for what the code looks at.

        Returns:
            The moments, as the column has them, by position.
        """
        date = self._shown.reindex([*dict.fromkeys(rows)]).dropna()
        at = self._given[date.index]
        unit = "month" if self._whole else unit or self._unit
        step = pd.Timedelta(days=1) if self._whole else pd.Timedelta(seconds=1)
        moments = [at + pd.Timedelta(self._window)] if self._window else []
        for name, length in [*_LENGTHS.items()] if not moments else []:
            if unit in ("", name):
                first = date.dt.floor("h" if name == "hour" else "D", ambiguous="NaT", nonexistent="NaT")
                first -= pd.to_timedelta(date.dt.day - 1, unit="D") * int(name == "month")
                last = first + length - step
                moments += [at - (date - first), at - (date - last)]
        found = pd.concat(moments).dropna()
        return found[found.between(*self._within)]


def read_facts(tables: dict[str, pd.DataFrame], hints: Hints) -> list[Facts]:
    """Returns the facts of each table, with the conditions that can be evaluated on it."""
    found = [Facts(name, frame, hints) for name, frame in tables.items()]
    for hint in hints["conditions"]:
        owners = [facts for facts in found if all(column in facts.frame.columns for column in hint["columns"])]
        if not owners or not hint["columns"]:
            continue
        for facts in owners:
            condition = _condition(hint, facts, tables)
            if condition is not None:
                facts.conditions.append(condition)
                break
    for hint in hints["periods"]:
        for facts in found:
            if hint["columns"][0] in facts.frame.columns and (period := _period(hint, facts, tables)) is not None:
                facts.periods.append(period)
                break
    return found


def _condition(hint: Hints, facts: Facts, tables: dict[str, pd.DataFrame]) -> RowCondition | None:
    frame = facts.frame
    holds = _by_row(hint["condition"], tables, frame)
    if holds is None:
        return None
    truth = np.zeros(len(frame), dtype=bool)
    truth[holds.index.to_numpy()] = holds.fillna(False).to_numpy(dtype=bool)
    values = _by_row(hint["operand"], tables, frame) if hint["operand"] else None
    near: list[int] = []
    if values is not None:
        sides = [_sides(values, constant) for constant in hint["constants"]]
        near = [label for three in sides for side in three for label in side]
        hint["gap"] = "" if any(same for _, same, _ in sides) else hint["gap"]
    literals = []
    if len(hint["columns"]) == 1 and hint["bare"]:
        for constant in hint["constants"]:
            literals += _around(constant, frame[hint["columns"][0]])
        if hint["within"]:
            known = frame[hint["columns"][0]].dropna()
            literals = [one for one in literals if not known.empty and known.min() <= literal_value(one) <= known.max()]
    return RowCondition(hint["columns"], truth, near[:_MOST_DONORS], literals)


def _period(hint: Hints, facts: Facts, tables: dict[str, pd.DataFrame]) -> Period | None:
    given = facts.frame[hint["columns"][0]]
    shown = _by_row(hint["operand"], tables, facts.frame)
    if shown is None or not all(pd.api.types.is_datetime64_any_dtype(one.dtype) for one in (given, shown)):
        return None
    return Period(hint, given, shown)


def evaluated(text: str, tables: dict[str, pd.DataFrame], **more: Any) -> Any:
    """Returns an expression's value; None if it has none."""
    names = {"pd": pd, "np": np, **tables, **more}
    if len(tables) == 1:
        names["df"] = next(iter(tables.values()))
    try:
        return eval(text, names)  # noqa: S307 - a part of the suite's code, in the jail
    except Exception:
        return None


def _by_row(text: str, tables: dict[str, pd.DataFrame], frame: pd.DataFrame) -> pd.Series | None:
    """Returns an expression's value as a Series labelled by rows of the table; None if it is something else."""
    value = evaluated(text, tables, _rows=frame)
    if not isinstance(value, pd.Series) or not isinstance(frame.index, pd.RangeIndex):
        return None
    if value.empty or not pd.api.types.is_integer_dtype(value.index.dtype) or value.index.nlevels > 1:
        return None
    if not value.index.is_unique or value.index.min() < 0 or value.index.max() >= len(frame):
        return None
    return value if len(value) == len(frame) or len(value) > len(frame) // 50 else None


def _sides(values: pd.Series, constant: Any) -> tuple[list[int], list[int], list[int]]:
    """Returns labels of a few rows just below a constant, at it, and just above."""
    known = values.dropna()
    other = constant
    try:
        if pd.api.types.is_datetime64_any_dtype(known.dtype):
            other = pd.Timestamp(constant)
        elif pd.api.types.is_timedelta64_dtype(known.dtype):
            other = pd.Timedelta(constant)
        same = known[known == other].index[:_NEAREST]
        if not pd.api.types.is_numeric_dtype(known.dtype) and not isinstance(other, pd.Timestamp | pd.Timedelta):
            return [*known[known != other].index[:_NEAREST]], [*same], []
        below, above = known[known < other].nlargest(_NEAREST), known[known > other].nsmallest(_NEAREST)
        return [*below.index], [*same], [*above.index]
    except Exception:
        return [], [], []


def moment_literal(moment: pd.Timestamp) -> Any:
    """Returns the literal of a recipe that stands for a moment."""
    return {**_DAY, "v": moment.isoformat()}


def _around(constant: Any, column: pd.Series) -> list[Any]:
    """Returns literals at a constant and close to it, in the type of the column."""
    dtype = column.dtype
    if isinstance(constant, str) and pd.api.types.is_datetime64_any_dtype(dtype):
        moment = pd.Timestamp(constant)
        moments = [moment, moment - pd.Timedelta(seconds=1), moment + pd.Timedelta(days=1)]
        return [moment_literal(one) for one in moments]
    if isinstance(constant, bool) or not isinstance(constant, int | float):
        return []
    if pd.api.types.is_integer_dtype(dtype):
        return [int(constant), int(constant) - 1, int(constant) + 1]
    if pd.api.types.is_float_dtype(dtype):
        whole = bool((column.dropna() % 1 == 0).all())
        step = 1.0 if whole else 0.01
        return [float(constant), float(constant) - step, float(constant) + step]
    return []


def _is_fraction(values: pd.Series) -> bool:
    return pd.api.types.is_float_dtype(values.dtype) and not bool((values.dropna() % 1 == 0).all())


def _is_key(values: pd.Series) -> bool:
    """Whether values are all different, and not only by chance; most columns repeat one early."""
    return values.iloc[:_SAMPLED].is_unique and values.is_unique and not _is_fraction(values)


def _are_different(frame: pd.DataFrame, pair: tuple[str, str]) -> bool:
    """Whether pairs of values are all different although some would be expected to be equal by chance."""
    known = frame[list(pair)].dropna()
    possible = known[pair[0]].nunique() * known[pair[1]].nunique()
    return len(known) ** 2 / 2 > _EXPECTED_PAIRS * possible and not known.duplicated().any()
