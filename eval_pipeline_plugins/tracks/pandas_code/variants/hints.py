"""Finds from its syntax tree what reference code examines in its tables; variants of the tables are made for that."""

import ast
import hashlib
from collections.abc import Collection, Iterator
from typing import Any

from eval_pipeline_plugins.tracks.pandas_code.variants.mutants.normal import normal
from eval_pipeline_plugins.tracks.pandas_code.variants.names import Applied, Names, inlined, statements

_LARGEST_COUNT = 60
_JOINED = frozenset("merge join concat reset_index".split())
_OTHER_ROWS = _JOINED | frozenset("groupby value_counts pivot_table agg explode melt resample rolling".split())
_TESTS = frozenset("isin isna notna isnull notnull startswith endswith contains duplicated".split())
_GROUPING = frozenset("groupby pivot pivot_table drop_duplicates duplicated value_counts crosstab".split())
_COUNTING = frozenset("head tail nlargest nsmallest rolling".split())
_ORDERED = (ast.Gt, ast.GtE, ast.Lt, ast.LtE, ast.Eq, ast.NotEq)
_UNITS = dict.fromkeys("month year quarter is_month_end is_month_start month_name M Q Y".split(), "month")
_UNITS |= dict.fromkeys("day date dayofweek weekday day_of_week day_name normalize isocalendar D W B".split(), "day")
_UNITS |= dict.fromkeys("hour time h H".split(), "hour")
_ROWS = ast.Name("_rows", ast.Load())
"""Stands for the table that has the columns."""


def read_hints(code: str, columns: Collection[str], seed: str) -> dict[str, Any]:
    """Returns what code examines, as plain data for the sandbox.

    Args:
        code: reference code that parses.
        columns: names of the columns of all tables.
        seed: text from which the seed of the variants is made.

    Returns:
        `columns`: columns that the code mentions. `conditions`: tests of rows, each with the text of the test
        (`condition`, empty for one of groups or other rows than those of a table) and of the compared expression
        (`operand`, empty for none), its `columns`, the `constants` it is compared with, whether the expression is a
        `bare` column, whether new values must lie `within` those that the column has, as the question does not say
        what is right outside all bins, and by how much the compared expression is above what it is compared with
        (`gap`, empty for none). `periods`: expressions of a date (`operand`) of which the month, day or hour counts
        (`unit`, empty if any may), or those before it within a `window`, each with its `columns`. `groups`: columns by
        which rows are grouped. `keys`: pairs of joined columns. `counts`: small whole numbers with which numbers of
        rows are compared. `texts`: texts that are not names of columns. `seed`.
    """
    digest = hashlib.sha256(f"{seed}\n{code}".encode()).digest()
    tree = Applied().visit(ast.parse(normal(code, columns)))
    named = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    parts = [*statements(tree)]
    found = [one for statement, names in parts for one in _Reader(names, columns).conditions(statement)]
    periods = [one for statement, names in parts for one in _periods(statement, names, columns)]
    return {
        "columns": sorted(set(columns).intersection(named)),
        "conditions": [one for place, one in enumerate(found) if one not in found[:place]],
        "periods": [one for place, one in enumerate(periods) if one not in periods[:place]],
        "groups": sorted({name for part in parts for name in _grouped(*part) if name in columns}),
        "keys": sorted({pair for pair in _keys(tree) if pair[0] in columns and pair[1] in columns}),
        "counts": sorted({count for part in parts for count in _counts(*part)}),
        "texts": sorted({text for text in _texts(tree) if text not in columns}),
        "seed": int.from_bytes(digest[:4]),
    }


class _Reader:
    """Reads the conditions of a statement."""

    def __init__(self, names: Names, columns: Collection[str]) -> None:
        self._names, self._columns = names, columns

    def conditions(self, statement: ast.stmt) -> Iterator[dict[str, Any]]:
        """Yields what `read_hints` says of conditions."""
        for node in ast.walk(statement):
            match node:
                case ast.Compare(left=left, comparators=[right]):
                    yield from self._compared(node, left, right)
                case ast.Call(func=ast.Attribute(value=operand, attr=name), args=arguments) if name in _TESTS:
                    constants = [value for argument in arguments for value in _constants(argument)]
                    yield from self._tested(node, operand if name == "isin" else None, constants)
                case ast.Call(func=ast.Attribute(attr="cut" | "digitize"), args=[operand, *more]):
                    # Which bin a value at an edge is in depends on `right`.
                    edges = [*more[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "bins")]
                    constants = [value for edge in edges for value in _constants(inlined(edge, self._names))]
                    if len(constants) > 1:
                        known = ast.Call(ast.Attribute(operand, "notna", ast.Load()), [], [])
                        for found in self._tested(known, operand, constants):
                            yield {**found, "within": True}
                case ast.Call(
                    func=ast.Attribute(value=table, attr="nlargest" | "nsmallest" as name),
                    args=[ast.Constant(value=int() as count), ast.Constant(value=str() as column)],
                ) if any(ast.unparse(one) == "keep='all'" for one in node.keywords):
                    # What ties with the last one is in the result too.
                    ranks = f"({ast.unparse(table)})[{column!r}].rank(method='min', ascending={name == 'nsmallest'})"
                    place = ast.parse(ranks, mode="eval").body
                    yield from self._tested(ast.Compare(place, [ast.LtE()], [ast.Constant(count)]), place, [count])
                case ast.UnaryOp(op=ast.Invert(), operand=ast.Subscript() as operand):
                    yield from self._tested(operand, None, [])

    def _compared(self, node: ast.Compare, left: ast.expr, right: ast.expr) -> Iterator[dict[str, Any]]:
        operand, constants = next(
            ((one, found) for one, other in ((left, right), (right, left)) if (found := _constants(other))), (None, [])
        )
        difference = ast.BinOp(left, ast.Sub(), right)
        is_measured = isinstance(node.ops[0], _ORDERED) and not any(isinstance(one, bool | str) for one in constants)
        gap = difference if is_measured else None
        yield from self._tested(node, difference if operand is None else operand, constants or [0], gap)

    def _tested(
        self, condition: ast.expr, operand: ast.expr | None, constants: list[Any], gap: ast.expr | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yields a condition unless it concerns other rows than those of a table, and has no gap."""
        whole = _by_row(inlined(condition, self._names), self._columns)
        concerns_rows = not any(
            isinstance(part, ast.Attribute) and part.attr in _OTHER_ROWS for part in ast.walk(whole)
        )
        if not concerns_rows and gap is None:
            return
        inner = None if operand is None else _by_row(inlined(operand, self._names), self._columns)
        bare = isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Constant)
        yield {
            "condition": ast.unparse(whole) if concerns_rows else "",
            "operand": "" if inner is None else ast.unparse(inner),
            "columns": _mentioned(whole if inner is None else inner, self._columns),
            "constants": constants,
            "bare": bare,
            "within": False,
            "gap": "" if gap is None or (bare and concerns_rows) else ast.unparse(inlined(gap, self._names)),
        }


class _ByRow(ast.NodeTransformer):
    """Looks columns up in their own table instead of in tables joined with it."""

    def __init__(self, columns: Collection[str]) -> None:
        self._columns = columns

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        match node:
            case ast.Subscript(value=ast.Call() as joined, slice=ast.Constant(value=name)) if name in self._columns:
                called = {part.attr for part in ast.walk(joined) if isinstance(part, ast.Attribute)}
                if called & _JOINED and not called & (_OTHER_ROWS - _JOINED | {"assign", "rename"}):
                    return ast.Subscript(_ROWS, node.slice, ast.Load())
        self.generic_visit(node)
        return node


def _by_row(node: ast.expr, columns: Collection[str]) -> ast.expr:
    found: ast.expr = _ByRow(columns).visit(node)
    return found


def _mentioned(node: ast.AST, columns: Collection[str]) -> list[str]:
    looked_at = [
        part.value if isinstance(part, ast.Constant) else part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute) or (isinstance(part, ast.Constant) and isinstance(part.value, str))
    ]
    return sorted(set(columns).intersection(looked_at))


def _constants(node: ast.expr) -> list[Any]:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() as found):
            return [found]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as found)):
            return [-found]
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return [found for part in parts for found in _constants(part)]
        case ast.Call(func=ast.Attribute(attr="Timestamp"), args=[ast.Constant(value=str() as found)]):
            return [found]
    return []


def _periods(statement: ast.stmt, names: Names, columns: Collection[str]) -> Iterator[dict[str, Any]]:
    for node in ast.walk(statement):
        operand: ast.expr | None = None
        window = unit = ""
        match node:
            case ast.Attribute(value=ast.Attribute(value=date, attr="dt"), attr=name) if name[:3] != "tz_":
                operand, unit = date, _UNITS.get(name, "")
            case ast.Call(func=ast.Attribute(value=table, attr="resample" | "rolling" | "Grouper" as name)):
                given = {word.arg: word.value for word in node.keywords}
                operand = given.get("on", given.get("key", _index(inlined(table, names))))
                told = next(_texts(ast.List([*node.args, given.get("freq", ast.Constant(0))])), "")
                window, unit = (told, "") if name == "rolling" else ("", _UNITS.get(told.strip("0123456789")[:1], ""))
        if operand is None:
            continue
        if isinstance(operand, ast.Constant):
            operand = ast.Subscript(_ROWS, operand, ast.Load())
        whole = _by_row(inlined(operand, names), columns)
        mentioned = _mentioned(whole, columns)
        if len(mentioned) == 1:
            yield {"operand": ast.unparse(whole), "columns": mentioned, "unit": unit, "window": window}


def _index(table: ast.expr) -> ast.expr | None:
    """Returns the column that is the index of a table."""
    for part in ast.walk(table):
        match part:
            case ast.Call(func=ast.Attribute(attr="set_index"), args=[ast.Constant() as column, *_]):
                return column
    return None


def _grouped(statement: ast.stmt, names: Names) -> Iterator[str]:
    for node in ast.walk(statement):
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _GROUPING:
                parts = [*node.args, *(keyword.value for keyword in node.keywords)]
                # What is counted by value is the column itself.
                parts += [inner] if name in ("value_counts", "duplicated") else []
                for part in parts:
                    yield from _texts(inlined(part, names))


def _texts(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def _keys(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr not in ("merge", "join", "map", "isin"):
            continue
        given = {keyword.arg: [*_texts(keyword.value)] for keyword in node.keywords}
        yield from ((name, name) for name in given.get("on", []))
        yield from zip(given.get("left_on", []), given.get("right_on", []), strict=False)
        if node.func.attr in ("map", "isin"):
            inside = [*_texts(node.func.value)]
            yield from ((one, other) for one in inside for argument in node.args for other in _texts(argument))


def _counts(statement: ast.stmt, names: Names) -> Iterator[int]:
    for node in ast.walk(statement):
        match node:
            case ast.Compare(left=left, comparators=[ast.Constant(value=int() as number)]):
                whole = inlined(left, names)
                if any(isinstance(part, ast.Attribute) and part.attr in _OTHER_ROWS for part in ast.walk(whole)):
                    yield from _small(number)
            case ast.Call(func=ast.Attribute(attr=name), args=[ast.Constant(value=int() as number), *_]):
                if name in _COUNTING:
                    yield from _small(number)


def _small(number: int) -> Iterator[int]:
    if not isinstance(number, bool) and 0 < number <= _LARGEST_COUNT:
        yield number
