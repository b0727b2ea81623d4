"""Finds statistics, groupings and joins in code."""

import ast
from collections.abc import Iterator, Mapping

from eval_pipeline_plugins.tracks.pandas_code.analysis.columns import column_arguments, is_module_call, touched_columns
from eval_pipeline_plugins.tracks.pandas_code.analysis.names import AssignedNames
from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import argument, call_name, keyword, root

STATISTICS: Mapping[str, frozenset[str]] = {
    "mean": frozenset({"mean", "average", "nanmean", "fmean", "describe"}),
    "sum": frozenset({"sum", "nansum", "fsum", "cumsum"}),
    "max": frozenset({"max", "nlargest", "amax", "nanmax", "idxmax", "cummax", "describe"}),
    "min": frozenset({"min", "nsmallest", "amin", "nanmin", "idxmin", "cummin", "describe"}),
    "count": frozenset(
        {"count", "size", "len", "value_counts", "nunique", "crosstab", "shape", "cumcount", "describe"}
    ),
    "group": frozenset({"groupby", "pivot_table", "pivot", "crosstab", "resample", "value_counts"}),
}
"""Operations in code that compute a statistic: those of the specification, and others with the same effect."""

_TAKES_FUNCTIONS = frozenset({"agg", "aggregate", "transform", "apply", "pivot_table", "crosstab", "NamedAgg"})
_FUNCTION_KEYWORDS = frozenset({"func", "aggfunc"})
_GROUPERS = frozenset({"groupby", "pivot_table", "pivot", "crosstab", "resample", "value_counts"})
_JOINS = frozenset({"merge", "merge_asof", "merge_ordered", "concat", "join"})
_MERGE_KEYS = ("on", "left_on", "right_on")


def operations(tree: ast.Module, names: AssignedNames) -> tuple[str, ...]:
    """Returns the names of the code's operations in line order: calls, functions named in `agg`, and sizes."""
    found = list[tuple[int, int, str]]()
    for node in ast.walk(tree):
        for name in _operations(node, names):
            found.append((node.end_lineno, node.end_col_offset, name))  # type: ignore[attr-defined]
    return tuple(name for _, _, name in sorted(found))


def _operations(node: ast.AST, names: AssignedNames) -> Iterator[str]:
    match node:
        case ast.Call():
            name = call_name(node)
            if name is not None:
                yield name
            if name in _TAKES_FUNCTIONS:
                yield from _functions(node, names)
            if name == "pivot_table" and argument(node, 3 + is_module_call(node, names), "aggfunc") is None:
                yield "mean"
        case ast.Attribute(attr="size" | "shape" as name, ctx=ast.Load()):
            yield name


def _functions(call: ast.Call, names: AssignedNames) -> Iterator[str]:
    """Yields the functions given to a call.

    Examples of arguments are `"mean"`, `["min", "max"]`, `{"x": "sum"}`, `total=("x", "sum")` and `np.mean`.
    """
    name = call_name(call)
    given = [*call.args[1:]] if name in ("NamedAgg", "pivot_table", "crosstab") else [*call.args]
    for item in call.keywords:
        if item.arg in _FUNCTION_KEYWORDS:
            given.append(item.value)
        elif name in ("agg", "aggregate") and isinstance(item.value, ast.Tuple):
            given += item.value.elts[1:]
        elif name in ("agg", "aggregate"):
            given.append(item.value)
    for argument_ in given:
        yield from _named_functions(argument_, names, set())


def _named_functions(node: ast.expr, names: AssignedNames, seen: set[str]) -> Iterator[str]:
    match node:
        case ast.Dict(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            for part in parts:
                yield from _named_functions(part, names, seen)
        case ast.Constant(value=str() as name) | ast.Attribute(attr=name):
            yield name
        case ast.Name(id=name):
            yield name
            for held in names.unseen(name, seen):
                yield from _named_functions(held, names, seen)


def grouping_columns(tree: ast.Module, names: AssignedNames) -> frozenset[str]:
    """Returns the columns by which code groups: in `groupby`, pivots, `crosstab`, `resample` and `value_counts`."""
    found: set[str] = set()
    index = {column for call in _calls(tree, "set_index") for column in column_arguments(call, names)}
    for call in _calls(tree, *_GROUPERS):
        name = call_name(call)
        if name in ("pivot_table", "pivot"):
            places = (1, 2) if name == "pivot_table" else ()
            shift = 1 if is_module_call(call, names) else 0
            given = [call.args[place + shift] for place in places if place + shift < len(call.args)]
            given += [held for key in ("index", "columns") if (held := keyword(call, key)) is not None]
        else:
            given = [*call.args, *(item.value for item in call.keywords)]
            found.update(column_arguments(call, names))
        for part in given:
            found.update(names.texts(part))
            found.update(touched_columns(part, names))
            for variable in [part] if isinstance(part, ast.Name) else getattr(part, "elts", ()):
                found.update(_touched_through(variable, names))
        if name == "value_counts" and isinstance(call.func, ast.Attribute):
            found.update(touched_columns(call.func.value, names))
            found.update(_touched_through(root(call.func.value), names))
        if name == "resample" or keyword(call, "level") is not None:
            found |= index
    return frozenset(found)


def _touched_through(node: ast.expr, names: AssignedNames) -> Iterator[str]:
    """Yields the columns in the value of a variable, such as `month = df["date"].dt.month`."""
    if isinstance(node, ast.Name):
        for held in names.variable(node.id):
            yield from touched_columns(held, names)


def _calls(tree: ast.Module, *called: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and call_name(node) in called:
            yield node


def joins(tree: ast.Module, names: AssignedNames) -> list[ast.Call]:
    """Returns the calls that join tables, without those that join texts."""
    return [call for call in _calls(tree, *_JOINS) if not _joins_texts(call, names)]


def _joins_texts(call: ast.Call, names: AssignedNames) -> bool:
    match call.func:
        case ast.Attribute(
            attr="join", value=ast.Constant(value=str()) | ast.JoinedStr() | ast.Attribute(attr="str" | "path")
        ):
            return True
        case ast.Attribute(attr="join", value=ast.Name(id=name)):
            return any(isinstance(held, ast.Constant | ast.JoinedStr) for held in names.variable(name))
        case ast.Name(id="join"):
            return True
    return False


def join_columns(tree: ast.Module, names: AssignedNames) -> frozenset[str]:
    """Returns the columns by which code joins tables: the keys of merges, and the index used by joins."""
    found: set[str] = set()
    by_index = False
    for call in joins(tree, names):
        shift = 1 if is_module_call(call, names) else 0
        if call_name(call) == "merge":
            for place, key in enumerate(_MERGE_KEYS, start=2 + shift):
                found.update(names.texts(argument(call, place, key)))
        else:
            for key in (*_MERGE_KEYS, "by", "left_by", "right_by"):
                found.update(names.texts(keyword(call, key)))
            by_index = True
        if keyword(call, "left_index") is not None or keyword(call, "right_index") is not None:
            by_index = True
        if call_name(call) == "join" and len(call.args) > 1:
            found.update(names.texts(call.args[1]))
    if by_index:
        for call in _calls(tree, "set_index"):
            found.update(column_arguments(call, names))
    return frozenset(found)
