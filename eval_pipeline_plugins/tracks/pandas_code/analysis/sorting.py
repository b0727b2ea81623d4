"""Finds how code sorts, and which rows it takes from the ends."""

import ast
from collections.abc import Iterable, Iterator
from typing import Literal

from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.pandas_code.analysis.columns import column_arguments
from eval_pipeline_plugins.tracks.pandas_code.analysis.names import AssignedNames
from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import argument, call_name, keyword, links

Direction = Literal["ascending", "descending"]
BOTH: frozenset[Direction] = frozenset({"ascending", "descending"})
_ASCENDING: frozenset[Direction] = frozenset({"ascending"})
_DESCENDING: frozenset[Direction] = frozenset({"descending"})
_DEFAULT_ROWS = 5
"""The default number of rows of `head` and `tail`."""


@value
class Cut:
    """Rows taken from one end of a sort order.

    Attributes:
        end: `top` for the largest values.
        n: how many; None if the code takes all or computes the number.
    """

    end: Literal["top", "bottom"]
    n: int | None


@value
class Sorting:
    """The sorts in a snippet.

    Attributes:
        directions: all directions in which it sorts; both for one that is computed.
        cuts: rows that it takes from an end of the order. If it takes none: the beginning of each order, with `n` None.
        keys: columns of the last sort.
    """

    directions: frozenset[Direction]
    cuts: tuple[Cut, ...]
    keys: tuple[str, ...]


def read_sorting(tree: ast.Module, names: AssignedNames) -> Sorting:
    """Finds the sorts of a snippet, and the rows that it takes from them."""
    sorts = {id(node): node for node in ast.walk(tree) if isinstance(node, ast.Call) and directions_of(node, names)}
    directions: set[Direction] = set()
    for sort in sorts.values():
        directions |= directions_of(sort, names)
    if any(_reverses(node) for node in ast.walk(tree)) and directions:
        directions |= BOTH
    cuts, used = list[Cut](), set[int]()
    for node in ast.walk(tree):
        for cut, origin in _cuts(node, names):
            cuts.append(cut)
            used |= {id(origin)} if origin is not None else set()
    for place, sort in sorts.items():
        if place not in used:
            cuts += [Cut(_first_end(direction), None) for direction in sorted(directions_of(sort, names))]
    by_place = sorted(sorts.values(), key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0))
    keys = tuple(dict.fromkeys(column_arguments(by_place[-1], names))) if by_place else ()
    return Sorting(frozenset(directions), tuple(cuts), keys)


def directions_of(call: ast.Call, names: AssignedNames) -> frozenset[Direction]:
    """Returns the directions in which a call sorts; empty if it does not sort."""
    match call_name(call):
        case "sort_values":
            return _directions(argument(call, 99, "ascending"), names)
        case "sort_index":
            return _directions(keyword(call, "ascending"), names)
        case "value_counts" if not _is(keyword(call, "sort"), False):
            given = keyword(call, "ascending")
            return _directions(given, names) if given is not None else _DESCENDING
        case "sorted" | "sort":
            given = keyword(call, "reverse")
            return _ASCENDING if given is None else BOTH - _directions(given, names) or BOTH
        case "nlargest":
            return _DESCENDING
        case "nsmallest":
            return _ASCENDING
    return frozenset()


def _directions(ascending: ast.expr | None, names: AssignedNames) -> frozenset[Direction]:
    """Returns the directions of an argument `ascending`: ascending by default, both if it is computed."""
    match ascending:
        case None:
            return _ASCENDING
        case ast.Constant(value=bool() | int() as said):
            return _ASCENDING if said else _DESCENDING
        case ast.List(elts=items) | ast.Tuple(elts=items) if items:
            found: frozenset[Direction] = frozenset()
            for item in items:
                found |= _directions(item, names)
            return found
        case ast.Name(id=name) if len(names.variable(name)) == 1 and not isinstance(names.variable(name)[0], ast.Name):
            return _directions(names.variable(name)[0], names)
    return BOTH


def _is(node: ast.expr | None, held: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is held


def _first_end(direction: Direction) -> Literal["top", "bottom"]:
    return "top" if direction == "descending" else "bottom"


def _cuts(node: ast.AST, names: AssignedNames) -> Iterator[tuple[Cut, ast.Call | None]]:
    """Yields the rows that a node takes from an end, and the call that sorted them."""
    match node:
        case ast.Call(func=ast.Attribute(value=held)):
            yield from _called_cut(node, held, names)
        case ast.Call(func=ast.Name(id="nlargest" | "nsmallest" as name), args=[number, *_]):
            yield Cut("top" if name == "nlargest" else "bottom", names.number(number)), node
        case ast.Subscript(value=held, slice=ast.Slice(lower=lower, upper=upper, step=None)):
            first, last = names.number(lower), names.number(upper)
            if lower is None and upper is not None and (last is None or last > 0):
                yield from _of_order(held, last, names, from_end=False)
            elif upper is None and first is not None and first < 0:
                yield from _of_order(held, -first, names, from_end=True)
        case ast.Subscript(value=ast.Attribute(attr="iloc"), slice=place):
            row = names.number(place)
            if row in (0, -1):
                yield from _of_order(node.value, 1, names, from_end=row == -1)
        case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE() as sign], comparators=[right]):
            most = names.number(right)
            if most is not None:
                yield from _ranked(left, most - isinstance(sign, ast.Lt), names)


def _called_cut(call: ast.Call, held: ast.expr, names: AssignedNames) -> Iterator[tuple[Cut, ast.Call | None]]:
    match call_name(call):
        case "nlargest" | "nsmallest" as name:
            number = argument(call, 0, "n")
            n = names.number(number) if number is not None else _DEFAULT_ROWS
            yield Cut("top" if name == "nlargest" else "bottom", n), call
        case "head" | "tail" as name:
            number = argument(call, 0, "n")
            n = names.number(number) if number is not None else _DEFAULT_ROWS
            found = list(_of_order(held, n, names, from_end=name == "tail"))
            # If the order of rows is unknown, the first ones are considered the top.
            yield from found or [(Cut("top" if name == "head" else "bottom", n), None)]
        case "idxmax" | "argmax":
            yield Cut("top", 1), None
        case "idxmin" | "argmin":
            yield Cut("bottom", 1), None


def _of_order(
    held: ast.expr, n: int | None, names: AssignedNames, *, from_end: bool
) -> Iterator[tuple[Cut, ast.Call | None]]:
    """Yields the rows that `head`, `tail` or a slice takes from a value, if the value was sorted."""
    sort, reversed_since = _sort_of(held, names, set())
    if sort is None:
        return
    for direction in sorted(directions_of(sort, names)):
        top = (direction == "descending") != (from_end != reversed_since)
        yield Cut("top" if top else "bottom", n), sort


def _sort_of(node: ast.expr, names: AssignedNames, seen: set[str]) -> tuple[ast.Call | None, bool]:
    """Returns the last sort of a chain (also through variables), and whether the order was reversed afterwards."""
    turned = False
    for link in links(node):
        turned ^= _reverses(link)
        if isinstance(link, ast.Call) and directions_of(link, names):
            return link, turned
        if isinstance(link, ast.Name):
            for held in reversed(names.unseen(link.id, seen)):
                sort, since = _sort_of(held, names, seen)
                if sort is not None:
                    return sort, turned ^ since
    return None, turned


def _reverses(node: ast.AST) -> bool:
    """Returns whether a node is `[::-1]`."""
    match node:
        case ast.Subscript(slice=ast.Slice(step=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)))):
            return True
    return False


def _ranked(left: ast.expr, n: int, names: AssignedNames) -> Iterator[tuple[Cut, ast.Call | None]]:
    """Yields the rows of `rank(...) <= n`, even if the rank was first stored in a column or a variable."""
    kept: Iterable[ast.expr] = [left]
    match left:
        case ast.Subscript(slice=ast.Constant(value=str() as name)) | ast.Attribute(attr=name):
            kept = [left, *names.column(name)]
        case ast.Name(id=name):
            kept = names.variable(name)
    for source in kept:
        for link in links(source):
            if isinstance(link, ast.Call) and call_name(link) == "rank":
                for direction in sorted(_directions(keyword(link, "ascending"), names)):
                    yield Cut(_first_end(direction), n), None
