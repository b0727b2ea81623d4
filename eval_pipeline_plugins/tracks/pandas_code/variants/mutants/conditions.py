"""Makes mutants of conditions: dropped ones, other comparisons, other constants."""

import ast
import copy
import re
from collections.abc import Iterator, Mapping

from eval_pipeline_plugins.tracks.pandas_code.variants.mutants.mutant import CodeChange, Kind, Known, missing, other

_DATE = re.compile(r"(\d{4})-(\d\d)(-\d\d)?")
_BOUNDARIES: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_OPPOSITES: Mapping[type[ast.cmpop], type[ast.cmpop]] = {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
_TESTS: Mapping[str, str] = {"isna": "notna", "notna": "isna", "isnull": "notnull", "notnull": "isnull"}
_TEXT_TESTS: Mapping[str, str] = {"startswith": "contains", "endswith": "contains", "contains": "startswith"}
_MASKING = frozenset({*_TESTS, *_TEXT_TESTS, "isin", "between", "duplicated", "eq", "ne", "lt", "le", "gt", "ge"})


def condition_changes(node: ast.AST, known: Known, masks: Mapping[str, ast.expr]) -> Iterator[CodeChange]:
    """Yields changes of a condition.

    Args:
        node: any node of the code.
        known: columns and texts of the tables.
        masks: expressions of names that are assigned once.
    """
    match node:
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr() as op):
            yield from _joined(node, op)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield from _compared(node, left, op, right, known)
        case ast.Subscript(value=table, slice=ast.Tuple(elts=[mask, columns])) if _is_located(table):
            if _is_single(mask, masks):
                by = ast.Subscript(table, ast.Tuple([ast.Slice(), columns], ast.Load()), ast.Load())
                yield CodeChange(Kind.FILTER, True, missing(_named(mask, masks)), node, mask, by)
        case ast.Subscript(value=table, slice=mask) if _is_single(mask, masks):
            whole = table.value if isinstance(table, ast.Attribute) and _is_located(table) else table
            yield CodeChange(Kind.FILTER, True, missing(_named(mask, masks)), node, mask, whole)
        case ast.Call(func=ast.Attribute(value=mask, attr="sum" | "mean")) if _is_single(mask, masks):
            always = ast.BinOp(mask, ast.BitOr(), ast.Constant(True))
            yield CodeChange(Kind.FILTER, True, missing(_named(mask, masks)), mask, mask, always)
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            yield CodeChange(Kind.FILTER, False, other(node, operand), node, node, operand)
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr=name), args=arguments):
            yield from _tested(node, inner, name, arguments)


def _joined(node: ast.BinOp, op: ast.operator) -> Iterator[CodeChange]:
    if not (isinstance(node.left, ast.BinOp) and isinstance(node.left.op, type(op))):
        yield CodeChange(Kind.FILTER, True, missing(node.left), node, node.left, node.right)
    yield CodeChange(Kind.FILTER, True, missing(node.right), node, node.right, node.left)
    swapped = ast.BinOp(node.left, ast.BitOr() if isinstance(op, ast.BitAnd) else ast.BitAnd(), node.right)
    was, now = ("and", "or") if isinstance(op, ast.BitAnd) else ("or", "and")
    words = f"`{was}` before {missing(node.right).removesuffix(' were missing')} were `{now}`"
    yield CodeChange(Kind.FILTER, False, words, node, node, swapped)


def _compared(node: ast.Compare, left: ast.expr, op: ast.cmpop, right: ast.expr, known: Known) -> Iterator[CodeChange]:
    for table, kind in ((_BOUNDARIES, Kind.BOUNDARY), (_OPPOSITES, Kind.FILTER)):
        if type(op) in table:
            by = ast.Compare(left, [table[type(op)]()], [right])
            yield CodeChange(kind, False, other(node, by), node, node, by)
    for value in _other_constants(right, left, known):
        by = ast.Compare(left, [op], [value])
        yield CodeChange(Kind.CONSTANT, False, other(node, by), node, node, by)


def _other_constants(right: ast.expr, left: ast.expr, known: Known) -> Iterator[ast.expr]:
    match right:
        case ast.Constant(value=bool()):
            return
        case ast.Constant(value=int() as number):
            yield ast.Constant(number + 1)
        case ast.Constant(value=float() as number):
            yield ast.Constant(number + 1)
        case ast.Constant(value=str() as text):
            if match := _DATE.fullmatch(text):
                yield ast.Constant(f"{int(match[1]) + 1}{text[4:]}")
                return
            for column in _columns(left):
                if (another := known.another_text(text, column)) is not None:
                    yield ast.Constant(another)
                    return


def _tested(node: ast.Call, inner: ast.expr, name: str, arguments: list[ast.expr]) -> Iterator[CodeChange]:
    renamed = _TESTS.get(name) or _TEXT_TESTS.get(name)
    if renamed is not None:
        by = copy.deepcopy(node)
        assert isinstance(by.func, ast.Attribute)
        by.func.attr = renamed
        yield CodeChange(Kind.FILTER, False, other(node, by), node, node, by)
    if name == "isin" and arguments and isinstance(arguments[0], ast.List) and len(arguments[0].elts) > 1:
        for place, element in enumerate(arguments[0].elts):
            kept = [one for number, one in enumerate(arguments[0].elts) if number != place]
            by = ast.Call(ast.Attribute(inner, "isin", ast.Load()), [ast.List(kept, ast.Load())], node.keywords)
            yield CodeChange(Kind.FILTER, True, missing(element), node, element, by)
    if name == "query":
        yield CodeChange(Kind.FILTER, True, missing(arguments[0] if arguments else node), node, node, inner)


def _is_single(mask: ast.expr, masks: Mapping[str, ast.expr]) -> bool:
    """Whether a subscript is a single condition on rows."""
    found = _named(mask, masks)
    match found:
        case ast.Compare() | ast.UnaryOp(op=ast.Invert()):
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _MASKING
    return False


def _named(mask: ast.expr, masks: Mapping[str, ast.expr]) -> ast.expr:
    return masks.get(mask.id, mask) if isinstance(mask, ast.Name) else mask


def _is_located(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "loc"


def _columns(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        match part:
            case ast.Constant(value=str() as name):
                yield name
            case ast.Attribute(attr=name):
                yield name
