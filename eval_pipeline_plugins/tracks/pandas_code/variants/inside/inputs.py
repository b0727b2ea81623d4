"""Tests a function on other inputs than those of its tests; runs where no code of a model ever ran.

The tests are run once with the reference function in the place of the tested one. The arguments of its calls are the
given inputs; the other ones are made from them. The reference function says what is right for each.
"""

import copy
import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

_MOST_CALLS = 6
_DIGITS = 9
_LARGEST = 10_000
_LONGEST_TEXT = 400
_TABLES = (pd.DataFrame, pd.Series)

Function = Callable[..., Any]
Rng = np.random.Generator
Change = Callable[[Any, Rng], Any]
Call = tuple[tuple[Any, ...], dict[str, Any]]


def given_calls(run_tests: Callable[[Function], None], right: Function) -> list[Call]:
    """Returns copies of the arguments with which the tests call a function; different ones, in order."""
    found: dict[str, Call] = {}

    def remembered(*given: Any, **named: Any) -> Any:
        call = copy.deepcopy((given, named))
        found.setdefault(repr(call), call)
        return right(*given, **named)

    run_tests(remembered)
    return [*found.values()][:_MOST_CALLS]


def other_calls(calls: list[Call]) -> Iterator[tuple[str, Call]]:
    """Yields changed calls with the name of the change; lists, arrays and tables are changed, other arguments not."""
    rng = np.random.default_rng(0)
    for name, change in _CHANGES.items():
        for given, named in calls:
            changed = [change(one, rng) for one in given], {key: change(one, rng) for key, one in named.items()}
            call = tuple(copy.deepcopy(changed[0])), copy.deepcopy(changed[1])
            if repr(call) != repr((given, named)):
                yield name, call


def check_on_other_inputs(calls: list[Call], right: Function, tested: Function) -> None:
    """Raises an AssertionError, whose text is JSON, for the first other input where the tested function is wrong.

    An input for which the reference function fails, or has no result with a value in it, is left out. If that leaves
    none, a LookupError is raised.
    """
    tried = 0
    for name, (given, named) in other_calls(calls):
        try:
            expected = right(*copy.deepcopy(given), **copy.deepcopy(named))
            wanted = form(expected)
        except Exception:  # noqa: S112 - whatever it is, this input is not for this function
            continue
        if not _has_value(wanted):
            continue
        tried += 1
        text = ", ".join([*map(_text, given), *(f"{key}={_text(one)}" for key, one in named.items())])
        told = {"kind": name, "input": text, "expected": _text(expected)}
        try:
            returned = tested(*given, **named)
        except Exception as error:
            raise AssertionError(json.dumps({**told, "returned": f"{type(error).__name__}: {_text(error)}"})) from None
        if not is_same(form(returned), wanted):
            raise AssertionError(json.dumps({**told, "returned": _text(returned)}))
    if not tried:
        raise LookupError("there are no other inputs")


def form(value: Any) -> Any:
    """Returns plain data that are the same for results that only differ in order of rows and columns, or in types."""
    if isinstance(value, pd.Series):
        value = value.to_frame("values")
    if isinstance(value, pd.DataFrame):
        levels = [value.index.get_level_values(place) for place in range(value.index.nlevels)]
        labels = [level for level in levels if not pd.api.types.is_integer_dtype(level.dtype)]
        order = sorted(range(value.shape[1]), key=lambda place: str(value.columns[place]))
        columns = [[*map(form, level)] for level in labels] + [[*map(form, value.iloc[:, place])] for place in order]
        rows = sorted(zip(*columns, strict=True), key=repr)
        return ["table", sorted(map(str, value.columns)), [list(row) for row in rows], len(value)]
    if isinstance(value, np.ndarray | pd.Index | list | tuple | pd.api.extensions.ExtensionArray):
        return [form(one) for one in value]
    if isinstance(value, dict):
        return ["dict", sorted(([str(key), form(one)] for key, one in value.items()), key=repr)]
    if isinstance(value, set | frozenset):
        return ["set", sorted(map(form, value), key=repr)]
    return _cell(value)


def _cell(value: Any) -> Any:
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | float | np.integer | np.floating):
        number = float(value)
        return None if math.isnan(number) else float(f"{number:.{_DIGITS}g}")
    return str(value)


def is_same(one: Any, other: Any) -> bool:
    """Returns whether two forms are equal; numbers may differ by noise."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)
    return bool(one == other)


def _has_value(told: Any) -> bool:
    return any(map(_has_value, told)) if isinstance(told, list) else told is not None and not isinstance(told, str)


def _text(value: Any) -> str:
    text = value.to_csv(index=False) if isinstance(value, pd.DataFrame) else str(value)
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"


def _taken(value: Any, places: list[int]) -> Any:
    """Returns some rows of a table, or items of a list or array, in this order."""
    if isinstance(value, _TABLES):
        rows = value.iloc[places]
        return rows.reset_index(drop=True) if isinstance(value.index, pd.RangeIndex) else rows
    return [value[place] for place in places] if isinstance(value, list) else value[places]


def _rows(choose: Callable[[int, Rng], list[int]]) -> Change:
    def change(value: Any, rng: Rng) -> Any:
        is_many = isinstance(value, (*_TABLES, list, np.ndarray)) and len(value) > 1
        return _taken(value, choose(len(value), rng)) if is_many else value

    return change


def _columns(change: Callable[[pd.Series, Rng], pd.Series]) -> Change:
    def changed(value: Any, rng: Rng) -> Any:
        if isinstance(value, pd.Series):
            return change(value, rng)
        if isinstance(value, pd.DataFrame) and value.columns.is_unique:
            return pd.DataFrame({name: change(value[name], rng) for name in value.columns}, index=value.index)
        return value

    return changed


def _mixed(column: pd.Series, rng: Rng) -> pd.Series:
    return column.iloc[rng.permutation(len(column))].set_axis(column.index)


def _squared(column: pd.Series, rng: Rng) -> pd.Series:
    dtype = column.dtype
    is_number = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
    if not is_number or column.abs().max() > _LARGEST:
        return column
    return column * column.abs()


_CHANGES: dict[str, Change] = {
    "other scale": _columns(_squared),
    "other values": _columns(_mixed),
    "other order": _rows(lambda size, _: [*range(size)][::-1]),
    "duplicates": _rows(lambda size, _: [*range(size), 0, size - 1]),
    "fewer rows": _rows(lambda size, rng: sorted(int(one) for one in rng.permutation(size)[: max(1, size // 2)])),
    "one row": _rows(lambda size, _: [0]),
}
