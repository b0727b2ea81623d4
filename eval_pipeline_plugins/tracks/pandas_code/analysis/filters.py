"""Finds the conditions by which code selects rows."""

import ast
from collections.abc import Iterable, Iterator

from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.pandas_code.analysis.columns import expression_texts, parsed_expression
from eval_pipeline_plugins.tracks.pandas_code.analysis.names import AssignedNames
from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import call_name, keyword

_TESTS = frozenset(
    "isin between contains startswith endswith match fullmatch isna isnull notna notnull duplicated eq ne gt ge lt le "
    "isnan isfinite isnumeric isdigit isalpha any all".split()
)
"""Methods that return a truth value for each row."""
_JOINS = frozenset({"logical_and", "logical_or", "logical_not", "logical_xor"})
_THROUGH = frozenset({"fillna", "astype", "rename", "to_numpy", "reindex", "reset_index", "transform", "groupby"})
_REDUCTIONS = frozenset({"sum", "mean", "count_nonzero", "value_counts"})
_NOT_COLUMNS = frozenset({"columns", "index", "loc", "iloc"})

Atom = tuple[int, int]


@value
class Filters:
    """How code selects rows.

    Attributes:
        conditions: single conditions, each counted once even if it is used several times.
        ranges: those that test both ends of a range at once (`between`).
        counted: whether rows that meet a condition are counted by summing truth values.
        located: whether `.loc` is used.
    """

    conditions: int
    ranges: int
    counted: bool
    located: bool


def read_filters(tree: ast.Module, names: AssignedNames) -> Filters:
    """Finds the filters of a snippet: boolean indexing, `query`, `where`, `dropna` and others."""
    reader = _Reader(names)
    atoms: set[Atom] = set()
    counted = located = False
    for node in ast.walk(tree):
        atoms.update(reader.site(node))
        if call_name(node) in ("sum", "count_nonzero") and isinstance(node, ast.Call):
            counted = counted or any(reader.atoms(part) for part in _reduced(node))
        located = located or (isinstance(node, ast.Attribute) and node.attr == "loc")
    return Filters(len(atoms), len(reader.ranges & {place for place, _ in atoms}), counted, located)


def _reduced(call: ast.Call) -> Iterator[ast.expr]:
    """Yields what a reduction such as `sum` is applied to: its object, or its argument if it is a function."""
    if isinstance(call.func, ast.Attribute) and not isinstance(call.func.value, ast.Name):
        yield call.func.value
    elif isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        yield call.func.value
        yield from call.args[:1]
    else:
        yield from call.args[:1]


class _Reader:
    """Finds conditions, and remembers which of them are ranges."""

    def __init__(self, names: AssignedNames) -> None:
        self._names = names
        self.ranges: set[int] = set()

    def site(self, node: ast.AST) -> Iterator[Atom]:
        """Yields the conditions of a node that selects rows."""
        match node:
            case ast.Subscript(ctx=ast.Load() | ast.Store(), slice=chosen, value=held):
                if isinstance(chosen, ast.Tuple) and isinstance(held, ast.Attribute):
                    chosen = chosen.elts[0] if chosen.elts else chosen
                yield from self.atoms(chosen, indexing=True)
            case ast.comprehension(ifs=tests):
                for test in tests:
                    yield from self.atoms(test)
            case ast.Call():
                yield from self._call(node)

    def _call(self, call: ast.Call) -> Iterator[Atom]:
        match call_name(call):
            case "query":
                yield from self._query(call)
            case "where" | "mask" if call.args or keyword(call, "cond") is not None:
                yield from self.atoms(call.args[0] if call.args else keyword(call, "cond"))
            case "filter" if call.args and isinstance(call.args[0], ast.Lambda | ast.Name):
                # A function that says which items are kept: of groups, or in Python's own `filter`.
                yield from self.atoms(call.args[0])
            case "dropna" if isinstance(call.func, ast.Attribute):
                yield (id(call), 0)
            case "cut" if len(call.args) > 1 and isinstance(call.args[1], ast.List):
                yield from ((id(call), place) for place in range(len(call.args[1].elts) - 1))
            case "select" if call.args and isinstance(call.args[0], ast.List):
                for test in call.args[0].elts:
                    yield from self.atoms(test)
            case name if name in _REDUCTIONS:
                for part in _reduced(call):
                    yield from self.atoms(part)

    def _query(self, call: ast.Call) -> Iterator[Atom]:
        for text in expression_texts(call, self._names):
            tree, _ = parsed_expression(text)
            statements = tree.body if tree is not None else []
            found = sum(len(self.atoms(s.value)) for s in statements if isinstance(s, ast.Expr))
            yield from ((id(call), place) for place in range(found or 1))
            return
        yield (id(call), 0)

    def atoms(self, node: ast.expr | None, *, indexing: bool = False, seen: set[str] | None = None) -> set[Atom]:
        """Returns the single conditions in an expression.

        Args:
            node: the expression.
            indexing: whether it selects rows, so that a column in it must hold truth values.
            seen: variables and columns that have been looked up already.
        """
        seen = set() if seen is None else seen
        match node:
            case ast.Compare(ops=ops):
                return {(id(node), place) for place in range(len(ops))}
            case ast.BinOp(left=left, right=right, op=ast.BitAnd() | ast.BitOr() | ast.BitXor()):
                return self.atoms(left, indexing=True, seen=seen) | self.atoms(right, indexing=True, seen=seen)
            case ast.BoolOp(values=parts):
                return self._all(parts, seen)
            case ast.UnaryOp(op=ast.Invert() | ast.Not(), operand=part):
                return self.atoms(part, indexing=True, seen=seen)
            case ast.Lambda(body=body):
                return self.atoms(body, indexing=indexing, seen=seen)
            case ast.Call():
                return self._called(node, seen)
            case ast.Name(id=name):
                return self._all(self._names.unseen(name, seen), seen)
            case ast.Attribute(attr=name, value=ast.Name()) if indexing and name not in _NOT_COLUMNS:
                return self._column(node, name, seen)
            case ast.Subscript(slice=ast.Constant(value=str() as name)) if indexing:
                return self._column(node, name, seen)
        return set()

    def _all(self, parts: Iterable[ast.expr], seen: set[str]) -> set[Atom]:
        found: set[Atom] = set()
        for part in parts:
            found |= self.atoms(part, seen=seen)
        return found

    def _called(self, call: ast.Call, seen: set[str]) -> set[Atom]:
        name = call_name(call)
        if name in _JOINS:
            return self._all(call.args, seen)
        if name in _TESTS and isinstance(call.func, ast.Attribute):
            inner = self.atoms(call.func.value, seen=seen)
            if inner and name in ("any", "all", "eq", "ne"):
                return inner
            if name == "between":
                self.ranges.add(id(call))
            return {(id(call), 0)}
        if name in _THROUGH and isinstance(call.func, ast.Attribute):
            return self.atoms(call.func.value, seen=seen) | self._all(call.args[:1], seen)
        return set()

    def _column(self, node: ast.expr, name: str, seen: set[str]) -> set[Atom]:
        """Returns the conditions from which a column of truth values was made, or the column itself."""
        key = f"column {name}"
        stored = self._names.column(name) if key not in seen else []
        seen.add(key)
        return self._all(stored, seen) or {(id(node), 0)}
