"""Makes mutants that divide before they aggregate: the mean of ratios for the ratio of sums."""

import ast
import copy
from collections.abc import Iterator, Mapping

from eval_pipeline_plugins.tracks.pandas_code.variants.mutants.mutant import CodeChange, Kind, Known, pretty
from eval_pipeline_plugins.tracks.pandas_code.variants.names import assignments

_TOTALS = frozenset({"sum", "mean"})
_RATIO = "_ratio"


def ratio_changes(tree: ast.Module, known: Known) -> Iterator[CodeChange]:
    """Yields changes of ratios of two totals of the same rows, or of the same groups."""
    assigned = assignments(tree)
    columns = {name for table in known.tables.values() for name in table}
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            upper, lower = _total(node.left, assigned), _total(node.right, assigned)
            if upper is None or lower is None:
                if (change := _of_series(node, assigned)) is not None:
                    yield change
                continue
            (rows, above, how), (others, below, _) = upper, lower
            if ast.dump(rows) == ast.dump(others) and {above, below} <= columns:
                words = f"the ratio of the {how}s `{pretty(node)}` were the mean of `{above} / {below}`"
                yield CodeChange(Kind.AGGREGATION, False, words, node, node, _mean_of_ratios(rows, above, below, node))


def _of_series(node: ast.BinOp, assigned: Mapping[str, ast.expr]) -> CodeChange | None:
    """Returns the change of a ratio of sums of any two Series, such as a computed one; None for anything else."""
    match _resolved(node.left, assigned), _resolved(node.right, assigned):
        case (
            ast.Call(func=ast.Attribute(value=upper, attr="sum"), args=[], keywords=[]),
            ast.Call(func=ast.Attribute(value=lower, attr="sum"), args=[], keywords=[]),
        ) if not any(_is_grouped(one, assigned) for one in (upper, lower)):
            mean = ast.Call(ast.Attribute(ast.BinOp(upper, ast.Div(), lower), "mean", ast.Load()), [], [])
            words = f"the ratio of the sums `{pretty(node)}` were the mean of `{pretty(upper)} / {pretty(lower)}`"
            return CodeChange(Kind.AGGREGATION, False, words, node, node, mean)
    return None


def _is_grouped(rows: ast.expr, assigned: Mapping[str, ast.expr]) -> bool:
    """Whether a sum of this is one for each group."""
    rows = _resolved(rows, assigned)
    inner = _resolved(rows.value, assigned) if isinstance(rows, ast.Subscript | ast.Attribute) else rows
    return isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "groupby"


def _mean_of_ratios(rows: ast.expr, above: str, below: str, node: ast.BinOp) -> ast.expr:
    match rows:
        case ast.Call(func=ast.Attribute(value=table, attr="groupby")):
            ratio = ast.BinOp(_column(table, above), ast.Div(), _column(table, below))
            assign = ast.Call(ast.Attribute(table, "assign", ast.Load()), [], [ast.keyword(_RATIO, ratio)])
            groups = copy.deepcopy(rows)
            assert isinstance(groups.func, ast.Attribute)
            groups.func.value = assign
            found: ast.expr = ast.Call(ast.Attribute(_column(groups, _RATIO), "mean", ast.Load()), [], [])
            # Columns of a table of groups have the groups as labels, unless these have become a column.
            plain = isinstance(node.left, ast.Call)
            return found if plain else ast.Call(ast.Attribute(found, "to_numpy", ast.Load()), [], [])
    ratio = ast.BinOp(_column(rows, above), ast.Div(), _column(rows, below))
    return ast.Call(ast.Attribute(ratio, "mean", ast.Load()), [], [])


def _total(node: ast.expr, assigned: Mapping[str, ast.expr]) -> tuple[ast.expr, str, str] | None:
    """Returns the rows or groups, the column and the name of a total; None for anything else."""
    node = _resolved(node, assigned)
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr=how), args=[], keywords=[]) if how in _TOTALS:
            match _resolved(inner, assigned):
                case ast.Subscript(value=rows, slice=ast.Constant(value=str() as column)):
                    return _resolved(rows, assigned), column, how
        case ast.Subscript(value=table, slice=ast.Constant(value=str() as name)):
            return _aggregated(_resolved(table, assigned), name)
    return None


def _aggregated(table: ast.expr, name: str) -> tuple[ast.expr, str, str] | None:
    """Returns the total that is a column of an aggregated table."""
    match table:
        case ast.Call(func=ast.Attribute(value=inner, attr="reset_index"), args=[], keywords=[]):
            return _aggregated(inner, name)
        case ast.Call(func=ast.Attribute(value=rows, attr="agg"), args=[], keywords=words):
            for word in words:
                match word:
                    case ast.keyword(
                        arg=given, value=ast.Tuple(elts=[ast.Constant(value=str() as column), ast.Constant(value=how)])
                    ) if given == name and how in _TOTALS:
                        return rows, column, how
        case ast.Call(
            func=ast.Attribute(value=ast.Subscript(value=rows, slice=ast.List()), attr=how), args=[], keywords=[]
        ) if how in _TOTALS:
            return rows, name, how
    return None


def _resolved(node: ast.expr, assigned: Mapping[str, ast.expr]) -> ast.expr:
    while isinstance(node, ast.Name) and node.id in assigned:
        node = assigned[node.id]
    return node


def _column(table: ast.expr, name: str) -> ast.expr:
    return ast.Subscript(table, ast.Constant(name), ast.Load())
