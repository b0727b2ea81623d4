"""Finds the aspects in which generated code differs from the reference code, by the syntax trees of both."""

import ast
from collections import Counter
from collections.abc import Iterator

FILTERS, SORTS, LIMITS, AGGREGATES, GROUPINGS, JOINS = "filters", "sorts", "limits", "aggregates", "groupings", "joins"
"""Aspects in which code may differ."""

AGGREGATE_NAMES = frozenset(
    "sum mean median min max count size nunique std var first last idxmax idxmin prod quantile any all len".split()
)
_OF_METHOD = {
    **dict.fromkeys(("sort_values", "sort_index"), SORTS),
    **dict.fromkeys(("head", "tail", "nlargest", "nsmallest"), LIMITS),
    **dict.fromkeys(("groupby", "pivot_table", "pivot", "crosstab", "value_counts"), GROUPINGS),
    **dict.fromkeys(("merge", "join", "concat", "drop_duplicates"), JOINS),
    **dict.fromkeys(("query", "isin", "between", "isna", "notna", "dropna", "startswith", "contains"), FILTERS),
}


def differences(generated: str, reference: str) -> frozenset[str]:
    """Returns the aspects in which two pieces of code differ; none if the generated code does not parse."""
    from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import parse  # not for those who want the names above

    mine, theirs = parse(generated), parse(reference)
    if mine is None or theirs is None:
        return frozenset()
    found, expected = Counter(_aspects(mine)), Counter(_aspects(theirs))
    return frozenset(aspect for aspect, _ in (found - expected) + (expected - found))


def _aspects(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Returns aspect and text of every node in the tree that has an aspect."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            yield FILTERS, ast.unparse(node)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
            yield FILTERS, type(node.op).__name__
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            yield FILTERS, ast.unparse(node)
        elif isinstance(node, ast.Call):
            yield from _of_call(node)
        elif isinstance(node, ast.Constant) and node.value in AGGREGATE_NAMES:
            yield AGGREGATES, str(node.value)


def _of_call(node: ast.Call) -> Iterator[tuple[str, str]]:
    name = called(node)
    if name in AGGREGATE_NAMES:
        yield AGGREGATES, name
    aspect = _OF_METHOD.get(name)
    if aspect is not None:
        arguments = [ast.unparse(argument) for argument in node.args]
        keywords = sorted(f"{word.arg}={ast.unparse(word.value)}" for word in node.keywords if word.arg != "aggfunc")
        yield aspect, f"{name}({', '.join([*arguments, *keywords])})"


def called(node: ast.Call) -> str:
    """Returns the name of the called function or method."""
    match node.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""
