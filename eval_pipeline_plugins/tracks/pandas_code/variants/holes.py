"""Makes code that treats holes in another way: empty bins, periods, categories and combinations of keys.

People write a table of groups in forms that agree as long as no group is empty. Where the given tables have no empty
group, the question does not say what to do with one, so another right answer may have another result there.
"""

import ast
from collections.abc import Callable, Collection, Iterator

from eval_pipeline_plugins.tracks.pandas_code.variants.names import assignments

_FILLED = -7919
"""Stands for what is in a hole; no table has it."""
_MOST = 4
_CALLS = frozenset(
    "resample Grouper to_period reindex asfreq unstack pivot_table pivot crosstab value_counts observed".split()
)
_EVERY_PERIOD = """(lambda found: found.reindex(pd.period_range(
    found.index.min(), found.index.max(), name=found.index.name), fill_value={1}))({0})"""

_FORMING = frozenset("reset_index round sort_index sort_values rename rename_axis astype".split())


def other_holes(code: str) -> list[str]:
    """Returns codes that give the same result as long as there are no holes; each treats one call in another way."""
    if not any(name in code for name in _CALLS):  # which is faster to find out
        return []
    found: list[str] = []
    while len(found) < _MOST:
        tree = ast.parse(code)
        turned = _Turned(len(found), {id(call) for call in _shown(tree)})
        changed = ast.fix_missing_locations(turned.visit(tree))
        if turned.left >= 0:
            return found
        found.append(ast.unparse(changed))
    return found


def _shown(tree: ast.Module) -> Iterator[ast.expr]:
    """Yields the calls whose table is the result, but for its form."""
    assigned = assignments(tree)
    node = assigned.get("result")
    seen: set[str] = set()
    while node is not None:
        yield node
        match node:
            case ast.Name(id=name) if name not in seen:
                seen.add(name)
                node = assigned.get(name)
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _FORMING:
                node = inner
            case _:
                return


class _Turned(ast.NodeTransformer):
    """Changes the call of one place.

    Attributes:
        left: calls to leave as they are; below zero once one is changed.
    """

    def __init__(self, place: int, shown: Collection[int]) -> None:
        self.left = place
        self._shown = shown

    def visit_Call(self, node: ast.Call) -> ast.expr:
        is_shown = id(node) in self._shown
        self.generic_visit(node)
        change = _change(node, is_shown)
        if change is None:
            return node
        self.left -= 1
        return change(node) if self.left == -1 else node


def _change(node: ast.Call, is_shown: bool) -> Callable[[ast.Call], ast.expr] | None:
    """Returns how a call treats holes in another way; None if it makes none.

    What is computed from a table with missing cells is not the same where these are 0; a table that is shown is.
    """
    match node.func:
        case ast.Attribute(attr="unstack" | "pivot_table") if is_shown or _keyword(node, "fill_value") is not None:
            return _filled
        case ast.Attribute(attr="pivot") if is_shown:
            return lambda call: _formed("{0}.fillna({1})", call, ast.Constant(_FILLED))
        case ast.Attribute(attr="crosstab"):
            return lambda call: _formed("{0}.replace(0, {1})", call, ast.Constant(_FILLED))
        case ast.Attribute(attr="value_counts"):
            return lambda call: _formed("{0}.loc[lambda found: found > 0]", call)
        case ast.Attribute(attr="reindex" | "asfreq", value=given):
            columns = "columns" in {keyword.arg for keyword in node.keywords}
            kept = ":, {0}.columns.isin({1}.columns)" if columns else "{0}.index.isin({1}.index)"
            return lambda call: _formed(f"{{0}}.loc[{kept}]", call, given)
        case ast.Attribute(attr="groupby") if _keyword(node, "observed") is False:
            return _observed
        case ast.Attribute(value=ast.Call() as groups) | ast.Attribute(value=ast.Subscript(value=ast.Call() as groups)):
            if _is_by_period(groups):
                return lambda call: _formed("{0}.loc[{1}.size().to_numpy() > 0]", call, groups)
            if _is_by_period_that_occurs(groups):
                return lambda call: _formed(_EVERY_PERIOD, call, ast.Constant(_FILLED))
    return None


def _filled(call: ast.Call) -> ast.expr:
    kept = [keyword for keyword in call.keywords if keyword.arg != "fill_value"]
    call.keywords = [*kept, ast.keyword("fill_value", ast.Constant(_FILLED))]
    return call


def _observed(call: ast.Call) -> ast.expr:
    kept = [keyword for keyword in call.keywords if keyword.arg != "observed"]
    call.keywords = [*kept, ast.keyword("observed", ast.Constant(True))]
    return call


def _keyword(call: ast.Call, name: str) -> object:
    return next(
        (one.value.value for one in call.keywords if one.arg == name and isinstance(one.value, ast.Constant)), None
    )


def _is_by_period(groups: ast.Call) -> bool:
    """Whether rows are grouped by periods of time, of which each between the first and the last is in the result."""
    match groups.func:
        case ast.Attribute(attr="resample"):
            return True
        case ast.Attribute(attr="groupby"):
            return any(
                isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "Grouper"
                for one in groups.args
            )
    return False


def _is_by_period_that_occurs(groups: ast.Call) -> bool:
    """Whether rows are grouped by periods of time, of which only those with rows are in the result."""
    match groups.func, groups.args:
        case ast.Attribute(attr="groupby"), [ast.Name()]:
            return True  # if it is something else, the changed code fails, and is not used
        case ast.Attribute(attr="groupby"), [key]:
            return any(isinstance(one, ast.Attribute) and one.attr == "to_period" for one in ast.walk(key))
    return False


def _formed(form: str, *parts: ast.expr) -> ast.expr:
    return ast.parse(form.format(*(f"({ast.unparse(part)})" for part in parts)), mode="eval").body
