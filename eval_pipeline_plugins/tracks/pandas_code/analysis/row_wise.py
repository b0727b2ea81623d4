"""Finds work on single rows that pandas does on whole columns, and assignments that are lost in a copy."""

import ast
from collections.abc import Iterator

from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import (
    INDEXERS,
    argument,
    bound_names,
    call_name,
    keyword,
    links,
    root,
)

ANTI_PATTERNS = {
    "iterrows": "iterrows makes a Series of every row; work on columns",
    "itertuples": "itertuples goes through the rows one by one; work on columns",
    "apply-axis-1": "apply with axis=1 calls Python for every row; work on columns",
    "row-loop": "a Python loop over rows; work on columns",
    "chained-assignment": "assigns to a copy; use one .loc[rows, column]",
    "growing-frame": "copies the frame every time round; collect the parts and concat once",
}
"""The message for each rule."""

_Found = Iterator[tuple[str, int, str]]

_KEEPS_ROWS = frozenset(
    "loc iloc head tail sort_values sort_index query assign copy reset_index set_index dropna fillna drop rename merge "
    "join astype nlargest nsmallest filter where mask drop_duplicates sample values array to_numpy index iterrows "
    "apply map str dt round abs clip replace eval pipe tolist to_list items".split()
)
"""Operations whose result has as many rows as their object, or some of them."""
_MAKES_FRAMES = frozenset({"merge", "concat", "DataFrame", "read_csv", "read_parquet", "merge_asof", "merge_ordered"})


def row_wise_work(tree: ast.Module) -> _Found:
    """Returns rule, line and message of each anti-pattern in a snippet.

    Names that the snippet uses but does not define are considered tables, and so is what is derived from them.
    """
    tables = _tables(tree)
    for node in ast.walk(tree):
        for rule, line in _found(node, tables):
            yield rule, line, ANTI_PATTERNS[rule]


def _found(node: ast.AST, tables: set[str]) -> Iterator[tuple[str, int]]:
    match node:
        case ast.Call():
            name = call_name(node)
            if name in ("iterrows", "itertuples") and isinstance(node.func, ast.Attribute):
                yield name, _end_line(node)
            elif name == "apply" and _is_along_rows(node):
                yield "apply-axis-1", _end_line(node)
        case ast.For() | ast.AsyncFor() | ast.comprehension() if _is_rows(node.iter, tables):
            yield "row-loop", node.iter.lineno
        case ast.Assign(targets=targets):
            yield from (("chained-assignment", node.lineno) for target in targets if _is_chained(target, tables))
        case ast.AugAssign(target=target):
            if _is_chained(target, tables):
                yield "chained-assignment", node.lineno
    if isinstance(node, ast.For | ast.AsyncFor | ast.While):
        yield from (("growing-frame", line) for line in _growing(node, tables))


def _end_line(call: ast.Call) -> int:
    """Returns the line of a method's name, since a chain may span several lines."""
    return call.func.end_lineno or call.lineno


def _is_along_rows(call: ast.Call) -> bool:
    match argument(call, 1, "axis"):
        case ast.Constant(value=1 | "columns"):
            return isinstance(call.func, ast.Attribute)
    return False


def _tables(tree: ast.Module) -> set[str]:
    """Returns the names of tables and of values with their rows."""
    bound = set(bound_names(tree))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    tables = (
        used - bound - {"pd", "np"} - set(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__)
    )
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    for node in assigned:
        if _has_rows(node.value, tables):
            tables |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return tables


def _has_rows(node: ast.expr, tables: set[str]) -> bool:
    """Returns whether a value is a table or has its rows, as a column, a part or an array do."""
    chain = list(links(node))
    match chain[-1]:
        case ast.Name(id="pd"):
            made = chain[-3] if len(chain) >= 3 else chain[-1]
            steps, known = chain[:-3], call_name(made) in _MAKES_FRAMES
        case ast.Name(id=name):
            steps, known = chain[:-1], name in tables
        case _:
            return False
    return known and all(_keeps_rows(step, called=place > 0) for place, step in enumerate(steps))


def _keeps_rows(step: ast.expr, *, called: bool) -> bool:
    """Returns whether a step of a chain keeps the rows; an attribute that is not called is a column."""
    match step:
        case ast.Attribute(attr=name):
            return name in _KEEPS_ROWS or (not called and name not in ("columns", "dtypes", "shape", "size", "empty"))
        case ast.Subscript(slice=ast.Constant(value=int())):
            return False
    return True


def _is_rows(node: ast.expr, tables: set[str]) -> bool:
    """Returns whether a loop over this visits single rows; iterrows and itertuples have rules of their own."""
    match node:
        case ast.Call(func=ast.Name(id="range"), args=args):
            return any(_counts_rows(arg, tables) for arg in args)
        case ast.Call(func=ast.Name(id="enumerate" | "zip" | "reversed" | "list"), args=args):
            return any(_is_rows(arg, tables) for arg in args)
        case ast.Call(func=ast.Attribute(attr="to_dict", value=table)) as call:
            orient = argument(call, 0, "orient")
            return isinstance(orient, ast.Constant) and orient.value == "records" and _has_rows(table, tables)
        case ast.Name():  # iterates over the names of its columns
            return False
    if any(call_name(link) in ("iterrows", "itertuples") for link in links(node)):
        return False
    return _has_rows(node, tables) and not _is_frame(node)


def _is_frame(node: ast.expr) -> bool:
    """Returns whether a loop over it visits names of columns, since it is a selection of columns or rows of a frame."""
    match node:
        case ast.Subscript(slice=ast.List() | ast.Compare() | ast.BinOp()):
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name not in ("tolist", "to_list", "to_numpy", "items", "astype", "map", "fillna", "dropna", "round")
    return False


def _counts_rows(node: ast.expr, tables: set[str]) -> bool:
    """Returns whether it is `len(df)`, `df.shape[0]`, `len(df) - 1` or similar."""
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[table]):
            return _has_rows(table, tables)
        case ast.Subscript(value=ast.Attribute(attr="shape", value=table), slice=ast.Constant(value=0)):
            return _has_rows(table, tables)
        case ast.BinOp(left=left, right=right):
            return _counts_rows(left, tables) or _counts_rows(right, tables)
    return False


def _is_chained(target: ast.expr, tables: set[str]) -> bool:
    """Returns whether it is an assignment such as `df[rows]["x"] = ...`, `df["x"][0] = ...` or `df[rows].x = ...`."""
    match target:
        case ast.Subscript(value=ast.Attribute(value=held, attr=name)) if name in INDEXERS:
            chained = isinstance(held, ast.Subscript)
        case ast.Subscript(value=ast.Subscript()):
            chained = True
        case ast.Subscript(value=ast.Attribute(attr=name)):
            chained = name not in ("columns", "index", "values", "attrs")
        case ast.Attribute(value=ast.Subscript()):
            chained = True
        case _:
            return False
    start = root(target)
    return chained and isinstance(start, ast.Name) and start.id in tables


def _growing(loop: ast.For | ast.AsyncFor | ast.While, tables: set[str]) -> Iterator[int]:
    """Yields the lines that add rows to a frame in every iteration."""
    for node in ast.walk(loop):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if call_name(call) == "concat":
                parts = argument(call, 0, "objs") or keyword(call, "objs")
                if parts is not None and any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(parts)):
                    yield node.lineno
            case ast.Assign(
                targets=[
                    ast.Subscript(
                        value=ast.Attribute(attr="loc", value=table),
                        slice=ast.Call(func=ast.Name(id="len")),
                    )
                ]
            ) if _has_rows(table, tables):
                yield node.lineno
