"""Finds out whether the result of code has one computed value for each row of a table, in the order of the rows."""

import ast
from collections.abc import Collection
from functools import lru_cache
from typing import Literal

from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import parse

_Kind = Literal["table", "groups", "column", "computed", ""]
_OF_COLUMNS = frozenset(
    "cut isclose isfinite isin isna isnan isnull log notna qcut round sign sqrt to_datetime to_numeric where".split()
)
"""Functions of pandas and numpy that give one value for each of a column."""
_KEEPING = frozenset(
    """
    abs add apply astype between bfill ceil clip cummax cummin cumprod cumsum diff div duplicated eq ewm expanding ffill
    fillna floor ge gt interpolate isin isna isnull le lt map mask mod mul ne notna notnull pct_change pow rank rolling
    round rsub shift sub transform where
    """.split()
)
"""Methods of columns that give one value for each row."""
_OF_WINDOWS = frozenset({"mean", "sum", "max", "min", "std", "var", "median", "count"})
_WINDOWS = frozenset({"rolling", "expanding", "ewm"})
_OF_GROUPS = frozenset(
    "bfill cumcount cummax cummin cumprod cumsum diff ffill ngroup pct_change rank shift transform".split()
)
_SAME = frozenset({"copy", "rename", "to_frame", "to_list", "to_numpy", "tolist"})
_ACCESSORS = frozenset({"str", "dt"})


@lru_cache(maxsize=1024)
def keeps_rows(code: str, tables: tuple[str, ...]) -> bool:
    """Whether `result` is a column that is computed, with one value for each row of a table, as ranks and flags are.

    A column as it stands in the table is none: it lists what is there, in whatever order.

    Args:
        code: reference code.
        tables: names of the tables.
    """
    tree = parse(code)
    if tree is None:
        return False
    names: dict[str, _Kind] = dict.fromkeys((*tables, "df") if len(tables) == 1 else tables, "table")
    computed: set[str] = set()
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                names[name] = _kind(value, names, computed)
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=table), slice=ast.Constant(value=str() as name))]):
                if names.get(table) == "table" and _kind(statement.value, names, computed) == "computed":
                    computed.add(name)
            case ast.Import() | ast.ImportFrom():
                continue
            case _:
                return False
    return names.get("result") == "computed"


def _kind(node: ast.expr, names: dict[str, _Kind], computed: Collection[str]) -> _Kind:
    """Returns what an expression is; nothing if it may have other rows than a table."""
    match node:
        case ast.Name(id=name):
            return names.get(name, "")
        case ast.Subscript(value=held, slice=ast.Constant(value=str() as name)):
            return _column(_kind(held, names, computed), name, computed)
        case ast.Attribute(value=held, attr=name) if name not in _ACCESSORS | {"values"}:
            found = _kind(held, names, computed)
            of_parts = isinstance(held, ast.Attribute) and held.attr in _ACCESSORS
            return "computed" if of_parts and found in ("column", "computed") else _column(found, name, computed)
        case ast.Attribute(value=held):
            return _kind(held, names, computed)
        case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
            both = {_kind(left, names, computed), _kind(right, names, computed)}
            return "computed" if both & {"column", "computed"} else ""
        case ast.UnaryOp(operand=operand):
            return "computed" if _kind(operand, names, computed) in ("column", "computed") else ""
        case ast.Call(func=ast.Attribute(value=held, attr=name)):
            return _called(node, held, name, names, computed)
    return ""


def _column(held: _Kind, name: str, computed: Collection[str]) -> _Kind:
    if held == "groups":
        return "groups"
    return "" if held != "table" else "computed" if name in computed else "column"


def _called(call: ast.Call, held: ast.expr, name: str, names: dict[str, _Kind], computed: Collection[str]) -> _Kind:
    if isinstance(held, ast.Name) and held.id in ("pd", "np"):
        given = {_kind(one, names, computed) for one in call.args[:1]}
        return "computed" if name in _OF_COLUMNS and given & {"column", "computed"} else ""
    found = _kind(held, names, computed)
    if name == "groupby":
        return "groups" if found in ("table", "column", "computed") else ""
    if found == "groups":
        return "computed" if name in _OF_GROUPS else ""
    if found == "table":
        return "computed" if name == "duplicated" else "table" if name == "copy" else ""
    if found not in ("column", "computed"):
        return ""
    if name in _SAME or (name == "reset_index" and any(one.arg == "drop" for one in call.keywords)):
        return found
    if isinstance(held, ast.Attribute) and held.attr in _ACCESSORS:
        return "computed"
    if name in _OF_WINDOWS:
        of_window = isinstance(held, ast.Call) and isinstance(held.func, ast.Attribute) and held.func.attr in _WINDOWS
        return "computed" if of_window else ""
    return "computed" if name in _KEEPING else ""
