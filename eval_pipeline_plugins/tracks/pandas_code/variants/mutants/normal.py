"""A light normal form: what the same condition, column or statistic may be written as becomes one thing."""

import ast
from collections.abc import Collection

_COMPARED: dict[str, type[ast.cmpop]] = {
    "gt": ast.Gt,
    "ge": ast.GtE,
    "lt": ast.Lt,
    "le": ast.LtE,
    "eq": ast.Eq,
    "ne": ast.NotEq,
}
_NAMES = {"isnull": "isna", "notnull": "notna", "aggregate": "agg"}
_OPPOSITES = {"isna": "notna", "notna": "isna"}
_EDGES: dict[str, tuple[type[ast.cmpop], type[ast.cmpop]]] = {
    "both": (ast.GtE, ast.LtE),
    "left": (ast.GtE, ast.Lt),
    "right": (ast.Gt, ast.LtE),
    "neither": (ast.Gt, ast.Lt),
}
_ATTRIBUTES = frozenset("size shape index columns values name dtype str dt cat array".split())
_ROW = "_row"


def normal(code: str, columns: Collection[str]) -> str:
    """Returns code that means the same, as far as can be seen, in a form that is compared more easily.

    Conditions in `query`, as methods (`gt`, `between`) and in `loc` become comparisons in brackets, columns as
    attributes become lookups, `agg("sum")` becomes `sum()`. Whether it means the same is for the caller to find out by
    running it.

    Args:
        code: code that parses.
        columns: names of the columns of the tables.
    """
    tree = _Normal(columns).visit(ast.parse(code))
    return ast.unparse(ast.fix_missing_locations(tree))


class _Normal(ast.NodeTransformer):
    def __init__(self, columns: Collection[str]) -> None:
        self._columns = frozenset(columns) - _ATTRIBUTES

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return ast.Constant(-number)
            case ast.UnaryOp(op=ast.Invert(), operand=ast.Call(func=ast.Attribute(attr=name) as called)):
                if name in _OPPOSITES:
                    called.attr = _OPPOSITES[name]
                    return node.operand
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if node.attr in self._columns and isinstance(node.ctx, ast.Load):
            return ast.Subscript(node.value, ast.Constant(node.attr), ast.Load())
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Subscript(
                value=ast.Attribute(value=table, attr="loc"),
                slice=ast.Tuple(elts=[mask, ast.Constant() | ast.List() as columns]),
                ctx=ast.Load(),
            ) if _is_condition(mask):
                return ast.Subscript(ast.Subscript(table, mask, ast.Load()), columns, ast.Load())
            case ast.Subscript(value=ast.Attribute(value=table, attr="loc"), slice=mask, ctx=ast.Load()):
                if _is_condition(mask):
                    return ast.Subscript(table, mask, ast.Load())
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Attribute):  # what is called is no column
            node.func.value = self.visit(node.func.value)
            node.func.attr = _NAMES.get(node.func.attr, node.func.attr)
        else:
            node.func = self.visit(node.func)
        node.args = [self.visit(one) for one in node.args]
        for word in node.keywords:
            word.value = self.visit(word.value)
        return self._called(node)

    def _called(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr=name), args=[right], keywords=[]) if name in _COMPARED:
                return ast.Compare(inner, [_COMPARED[name]()], [right])
            case ast.Call(func=ast.Attribute(value=inner, attr="between"), args=[low, high], keywords=words):
                ends = _EDGES.get(_option(words, "inclusive", "both"))
                if ends is not None:
                    least, most = ast.Compare(inner, [ends[0]()], [low]), ast.Compare(inner, [ends[1]()], [high])
                    return ast.BinOp(least, ast.BitAnd(), most)
            case ast.Call(func=ast.Attribute(value=table, attr="query"), args=[ast.Constant(value=str() as text)]):
                mask = self._condition(text)
                if mask is not None:
                    row = ast.arguments([], [ast.arg(_ROW)], None, [], [], None, [])
                    return ast.Subscript(table, ast.Lambda(row, mask), ast.Load())
            case ast.Call(
                func=ast.Attribute(value=inner, attr="agg"), args=[ast.Constant(value=str() as name)], keywords=[]
            ) if name.isidentifier():
                return ast.Call(ast.Attribute(inner, name, ast.Load()), [], [])
            case ast.Call(func=ast.Attribute(value=ast.Name(id="pd"), attr="merge"), args=[left, *more]):
                return ast.Call(ast.Attribute(left, "merge", ast.Load()), more, node.keywords)
        return node

    def _condition(self, text: str) -> ast.expr | None:
        """Returns the condition of a `query` as an expression over a row; None if it is none of Python's."""
        try:
            found = ast.parse(text.replace("@", "").replace("`", "").strip(), mode="eval").body
        except (SyntaxError, ValueError):
            return None
        outer = {name[1:] for name in text.replace("(", " ").split() if name.startswith("@")}
        masked: ast.expr = self.visit(_Masked(outer).visit(found))
        return masked


class _Masked(ast.NodeTransformer):
    """Writes a condition of `query` as one over columns: `&` for `and`, lookups for names."""

    def __init__(self, outer: Collection[str]) -> None:
        self._outer = outer

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._outer:
            return node
        return ast.Subscript(ast.Name(_ROW, ast.Load()), ast.Constant(node.id), ast.Load())

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        found = node.values[0]
        for one in node.values[1:]:
            found = ast.BinOp(found, ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr(), one)
        return found

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return ast.UnaryOp(ast.Invert(), node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        parts = [_compared(left, op, right) for left, op, right in zip(sides, node.ops, sides[1:], strict=False)]
        found = parts[0]
        for one in parts[1:]:
            found = ast.BinOp(found, ast.BitAnd(), one)
        return found


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
    if not isinstance(op, ast.In | ast.NotIn):
        return ast.Compare(left, [op], [right])
    found = ast.Call(ast.Attribute(left, "isin", ast.Load()), [right], [])
    return found if isinstance(op, ast.In) else ast.UnaryOp(ast.Invert(), found)


def _option(words: list[ast.keyword], name: str, default: str) -> str:
    value = next((word.value for word in words if word.arg == name), ast.Constant(default))
    return str(value.value) if isinstance(value, ast.Constant) else ""


def _is_condition(mask: ast.expr) -> bool:
    match mask:
        case ast.Compare() | ast.BinOp(op=ast.BitAnd() | ast.BitOr()) | ast.UnaryOp(op=ast.Invert()):
            return True
        case ast.Call(func=ast.Attribute(attr="isin" | "isna" | "notna" | "startswith" | "endswith" | "contains")):
            return True
    return False
