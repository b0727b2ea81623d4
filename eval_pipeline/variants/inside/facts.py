"""Collects the facts about the original tables that are needed for making variants."""

from typing import Any

import numpy as np
import pandas as pd

from eval_pipeline.variants.inside.building import literal_value

Hints = dict[str, Any]
"""What the gold code looks at: see `eval_pipeline.variants.hints.Hints`."""
_NEAREST = 3
_MOST_DONORS = 40
_DAY = {"t": "datetime"}


class Facts:
    """A table, with what the gold code examines in it.

    Attributes:
        columns: columns that the gold code mentions.
        unique: columns whose values are all different; they stay different in a variant.
        nullable: mentioned columns with missing values; in a variant, only these may have missing values.
        conditions: conditions on this table alone.
        groups: mentioned columns by which rows are grouped.
    """

    def __init__(self, name: str, frame: pd.DataFrame, hints: Hints) -> None:
        self.name, self.frame = name, frame
        self.columns = [column for column in frame.columns if column in hints["columns"]]
        self.unique = {column for column in frame.columns if len(frame) > 1 and frame[column].is_unique}
        self.nullable = [column for column in self.columns if frame[column].isna().any()]
        self.groups = [column for column in hints["groups"] if column in self.columns and column not in self.unique]
        self.conditions: list[Condition] = []

    def editable(self, columns: list[str]) -> bool:
        """Returns whether cells of these columns may be replaced."""
        return not self.unique.intersection(columns)

    def truth(self) -> np.ndarray:
        """Returns which conditions hold for which rows, as an array of shape (rows, conditions)."""
        return np.array([one.holds for one in self.conditions]).reshape(len(self.conditions), len(self.frame)).T


class Condition:
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
    return found


def _condition(hint: Hints, facts: Facts, tables: dict[str, pd.DataFrame]) -> Condition | None:
    frame = facts.frame
    holds = _evaluated(hint["condition"], tables, frame)
    if holds is None:
        return None
    truth = np.zeros(len(frame), dtype=bool)
    truth[holds.index.to_numpy()] = holds.fillna(False).to_numpy(dtype=bool)
    values = _evaluated(hint["operand"], tables, frame) if hint["operand"] else None
    near: list[int] = []
    if values is not None:
        near = [label for constant in hint["constants"] for label in _nearest(values, constant)]
    literals = []
    if len(hint["columns"]) == 1 and hint["bare"]:
        for constant in hint["constants"]:
            literals += _around(constant, frame[hint["columns"][0]])
        if hint["within"]:
            known = frame[hint["columns"][0]].dropna()
            literals = [one for one in literals if not known.empty and known.min() <= literal_value(one) <= known.max()]
    return Condition(hint["columns"], truth, near[:_MOST_DONORS], literals)


def _evaluated(text: str, tables: dict[str, pd.DataFrame], frame: pd.DataFrame) -> pd.Series | None:
    """Returns an expression's value as a Series labelled by rows of the table; None if it is something else."""
    names = {"pd": pd, "np": np, **tables}
    if len(tables) == 1:
        names["df"] = next(iter(tables.values()))
    try:
        value = eval(text, names)  # noqa: S307 - a part of the suite's code, in the jail
    except Exception:
        return None
    if not isinstance(value, pd.Series) or not isinstance(frame.index, pd.RangeIndex):
        return None
    if value.empty or not pd.api.types.is_integer_dtype(value.index.dtype) or value.index.nlevels > 1:
        return None
    if not value.index.is_unique or value.index.min() < 0 or value.index.max() >= len(frame):
        return None
    return value if len(value) == len(frame) or len(value) > len(frame) // 50 else None


def _nearest(values: pd.Series, constant: Any) -> list[int]:
    """Returns labels of rows at the constant and on both sides of it."""
    known = values.dropna()
    try:
        other = pd.Timestamp(constant) if pd.api.types.is_datetime64_any_dtype(known.dtype) else constant
        below, same, above = known[known < other], known[known == other], known[known > other]
        numeric = pd.api.types.is_numeric_dtype(known.dtype) or isinstance(other, pd.Timestamp)
        if not numeric:
            return [*same.index[:_NEAREST], *known[known != other].index[:_NEAREST]]
        sides = [below.nlargest(_NEAREST).index, same.index[:_NEAREST], above.nsmallest(_NEAREST).index]
    except Exception:
        return []
    return [int(label) for side in sides for label in side]


def _around(constant: Any, column: pd.Series) -> list[Any]:
    """Returns literals at a constant and close to it, in the type of the column."""
    dtype = column.dtype
    if isinstance(constant, str) and pd.api.types.is_datetime64_any_dtype(dtype):
        moment = pd.Timestamp(constant)
        moments = [moment, moment - pd.Timedelta(seconds=1), moment + pd.Timedelta(days=1)]
        return [{**_DAY, "v": one.isoformat()} for one in moments]
    if isinstance(constant, bool) or not isinstance(constant, int | float):
        return []
    if pd.api.types.is_integer_dtype(dtype):
        return [int(constant), int(constant) - 1, int(constant) + 1]
    if pd.api.types.is_float_dtype(dtype):
        whole = bool((column.dropna() % 1 == 0).all())
        step = 1.0 if whole else 0.01
        return [float(constant), float(constant) - step, float(constant) + step]
    return []
