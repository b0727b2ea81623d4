"""Makes responses that are wrong in a given way by changing the reference code (for the simulated provider).

Every response is run and judged before it is returned, so the metrics are certain to report the requested failure mode.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from random import Random

from eval_pipeline.sandbox.returned.outcomes import SnippetFailed
from eval_pipeline.tracks.base import ArtefactError
from eval_pipeline_plugins.tracks.pandas_code import FAILURE_MODES
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline_plugins.tracks.pandas_code.failures.modes import Failure
from eval_pipeline_plugins.tracks.pandas_code.metrics.failure_mode import failure_mode
from eval_pipeline_plugins.tracks.pandas_code.responses.artefact import Code, fenced, parse_code
from eval_pipeline_plugins.tracks.pandas_code.results.structure import called
from eval_pipeline_plugins.tracks.pandas_code.running.evidence import DIFFERENT, failure_of_answer, judged
from eval_pipeline_plugins.tracks.pandas_code.running.execute import runnable
from eval_pipeline_plugins.tracks.pandas_code.running.runner import sandbox

_Change = Callable[[ast.AST], ast.AST | None]
"""Returns the replacement of a node in damaged code, or None if it cannot be damaged in this way."""

_PROSE = "I would filter the rows first and then add up what is left."
_OTHER_AGGREGATE = {"sum": "mean", "mean": "sum", "median": "mean", "max": "min", "min": "max", "idxmax": "idxmin"}
_OTHER_AGGREGATE |= {"count": "nunique", "size": "nunique", "idxmin": "idxmax", "first": "last", "last": "first"}
_OTHER_COMPARISON: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Gt: ast.Lt,
    ast.Lt: ast.Gt,
    ast.GtE: ast.Lt,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
_NEXT_COMPARISON: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Gt: ast.GtE,
    ast.Lt: ast.LtE,
    ast.GtE: ast.Gt,
    ast.LtE: ast.Lt,
}
_APPENDED = {
    "wrong_shape": "result = [result, None]",
    "wrong_unit": "result = result * 100",
    "wrong_column": "result = result.iloc[:, :-1]",
}
"""What goes after the reference code."""
_LIMITS = frozenset({"head", "tail", "nlargest", "nsmallest"})
_SORTS = frozenset({"sort_values", "sort_index"})


def damaged_response(gold: PandasGold, mode: str, rng: Random) -> str | None:
    """Returns a response with the given `failure_mode`, or None if this gold cannot fail in that way.

    Raises:
        ValueError: the mode is not in `FAILURE_MODES`.
        NoSandboxError: this machine cannot run code.
    """
    if mode not in FAILURE_MODES:
        raise ValueError(f"unknown failure mode '{mode}'; known: {', '.join(FAILURE_MODES)}")
    for text in _candidates(gold, mode, rng):
        if mode_of(text, gold) == mode:
            return text
    return None


def mode_of(text: str, gold: PandasGold) -> str | None:
    """Returns the failure mode that the metrics give to a response."""
    try:
        artefact = parse_code(text)
    except ArtefactError as error:
        return failure_mode(False, not text.strip(), False, error.error_class, "", None).label
    error_class, failure = _judged(artefact.code, gold)
    right = error_class is None and failure is None
    told = None if failure is None else {"mode": failure.mode, "why": failure.why}
    return failure_mode(right, False, True, error_class, "", told).label


@lru_cache(maxsize=4096)
def _judged(code: str, gold: PandasGold) -> tuple[str | None, Failure | None]:
    """Returns the class of the error that code runs into, or what went wrong as far as its result shows."""
    found = sandbox(gold.context.layer).run(runnable(code, gold.context), gold.context.paths)
    if isinstance(found, SnippetFailed):
        return str(found.error_class), None
    outcome = {"result": found.result}
    verdict, _, _ = judged(gold, Code(code), outcome)
    return None, failure_of_answer(gold, Code(code), outcome) if verdict == DIFFERENT else None


def _candidates(gold: PandasGold, mode: str, rng: Random) -> Iterator[str]:
    if mode == "no_answer":
        yield ""
    elif mode == "malformed_answer":
        yield _PROSE
    elif gold.code is None:
        if mode == "wrong_shape":
            yield fenced("result = [None, 'unknown']")
    elif mode == "syntax_error":
        yield fenced(_unclosed(gold.code))
    elif mode == "wrong_dtype":
        yield from (fenced(code) for code in _as_text(gold, rng))
    elif mode in _APPENDED:
        yield fenced(f"{gold.code.strip()}\n{_APPENDED[mode]}")
    else:
        for change in _CHANGES.get(mode, ()):
            yield from (fenced(code) for code in _changed(gold.code, _for_gold(change, gold), rng))


def _unclosed(code: str) -> str:
    """Returns the code without its last closing bracket."""
    place = max(code.rfind(bracket) for bracket in ")]}")
    return code[:place] + code[place + 1 :] if place >= 0 else f"{code.strip()} ("


def _as_text(gold: PandasGold, rng: Random) -> Iterator[str]:
    """Yields the code with a column of numbers or dates converted to text first."""
    assert gold.code is not None
    columns = [
        (table.name, column.name)
        for table in gold.context.tables
        for column in table.columns
        if column.dtype.startswith(("int", "float", "Int", "Float", "datetime"))
        and repr(column.name)[1:-1] in gold.code
    ]
    for table, column in rng.sample(columns, len(columns)):
        yield f'{table}["{column}"] = {table}["{column}"].astype(str)\n{gold.code.strip()}'


def _changed(code: str, change: _Change, rng: Random) -> Iterator[str]:
    """Yields the code with one node changed, trying all suitable nodes in random order."""
    places = [place for place, node in enumerate(ast.walk(ast.parse(code))) if change(node) is not None]
    for place in rng.sample(places, len(places)):
        tree = ast.parse(code)
        old = next(islice(ast.walk(tree), place, None))
        new = change(old)
        assert new is not None
        yield ast.unparse(ast.fix_missing_locations(_Swap(old, new).visit(tree)))


class _Swap(ast.NodeTransformer):
    """Replaces one node by another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._old else self.generic_visit(node)


def _for_gold(change: _Change, gold: PandasGold) -> _Change:
    """Passes the names of the tables' columns to a change that affects columns."""
    if change is not _misspelt:
        return change
    columns = {name for names in gold.context.columns.values() for name in names}
    return lambda node: _misspelt(node) if isinstance(node, ast.Constant) and node.value in columns else None


def _misspelt(node: ast.AST) -> ast.AST | None:
    return ast.Constant(f"{node.value!s}s") if isinstance(node, ast.Constant) else None


def _other_n(node: ast.AST) -> ast.AST | None:
    """Replaces N by N + 1."""
    match node:
        case ast.Call(args=[ast.Constant(value=int(count)), *rest]) if called(node) in _LIMITS:
            return ast.Call(node.func, [ast.Constant(count + 1), *rest], node.keywords)
    return None


def _unsorted(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SORTS:
        return node.func.value
    return None


def _other_direction(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Call) and called(node) in _SORTS:
        kept = [word for word in node.keywords if word.arg != "ascending"]
        if len(kept) == len(node.keywords):
            kept.append(ast.keyword("ascending", ast.Constant(False)))
        return ast.Call(node.func, node.args, kept)
    return None


def _fewer_conditions(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        return node.left
    return None


def _without_filter(node: ast.AST) -> ast.AST | None:
    """Replaces `df[condition]` by `df`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Compare | ast.BinOp | ast.Call):
        return node.value
    return None


def _other_condition(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _OTHER_COMPARISON:
        return ast.Compare(node.left, [_OTHER_COMPARISON[type(node.ops[0])]()], node.comparators)
    return None


def _other_boundary(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _NEXT_COMPARISON:
        return ast.Compare(node.left, [_NEXT_COMPARISON[type(node.ops[0])]()], node.comparators)
    return None


def _other_join(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Call) and called(node) == "merge":
        told = next((word.value for word in node.keywords if word.arg == "how"), None)
        how = "inner" if isinstance(told, ast.Constant) and told.value != "inner" else "outer"
        kept = [word for word in node.keywords if word.arg != "how"]
        return ast.Call(node.func, node.args, [*kept, ast.keyword("how", ast.Constant(how))])
    return None


def _with_duplicates(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "drop_duplicates":
        return node.func.value
    return None


def _fewer_keys(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Call) and called(node) == "groupby" and node.args:
        keys = node.args[0]
        if isinstance(keys, ast.List) and len(keys.elts) > 1:
            return ast.Call(node.func, [ast.List(keys.elts[:-1], ast.Load()), *node.args[1:]], node.keywords)
    return None


def _other_aggregate(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Attribute) and node.attr in _OTHER_AGGREGATE:
        return ast.Attribute(node.value, _OTHER_AGGREGATE[node.attr], node.ctx)
    if isinstance(node, ast.Constant) and node.value in _OTHER_AGGREGATE:
        return ast.Constant(_OTHER_AGGREGATE[node.value])
    return None


def _other_method(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        wrong = ast.Attribute(node.func.value, f"{node.func.attr}_by", ast.Load())
        return ast.Call(wrong, node.args, node.keywords)
    return None


_CHANGES: dict[str, Sequence[_Change]] = {
    "unknown_column": (_misspelt,),
    "execution_error": (_other_method,),
    "wrong_n": (_other_n,),
    "missing_sort": (_unsorted, _other_direction),
    "wrong_filter": (_fewer_conditions, _without_filter, _other_condition),
    "wrong_boundary": (_other_boundary,),
    "wrong_join": (_with_duplicates, _other_join),
    "wrong_grouping": (_fewer_keys,),
    "wrong_aggregate": (_other_aggregate,),
}
