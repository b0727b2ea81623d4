"""Makes code that means the same as other code, but breaks ties in another way.

If its result differs, ties make the result ambiguous, and another right answer may have another result.
"""

import ast
import re

_BY_FIRST = frozenset({"idxmax", "idxmin"})
_KEEPING = frozenset({"nlargest", "nsmallest", "drop_duplicates"})
_BREAKING = _BY_FIRST | _KEEPING | {"sort_values", "value_counts"}
_TAKING = re.compile(
    r"\b(apply|arg\w+|bfill|cum\w+|describe|diff|duplicated|enumerate|ffill|first|for|head|iat|iloc|interpolate|iter\w*|key"
    r"|last|merge_asof|mode|most_common|next|nth|pct_change|qcut|rank|reindex|rolling|sample|shift|sort\w*|tail|take"
    r"|transform|unique|while|zip)\b|\[-?\d*:?-?\d*\]"
)
"""Names and subscripts that may take rows by their place, or pick one of equal ones, only where the data have some."""


def takes_by_place(code: str) -> bool:
    """Whether code may depend on the order of rows on some tables and not on others, such as those with ties.

    Any other code that depends on it does so nearly everywhere.
    """
    return any(name in code for name in _BREAKING) or _TAKING.search(code) is not None


def other_ties(code: str) -> list[str]:
    """Returns codes that break ties in favour of what comes last instead of first; none if the code breaks no ties.

    One of them reverses how the first of several is picked, another reverses the sorting; both at once would cancel
    out.
    """
    found: list[str] = []
    if not any(name in code for name in _BREAKING):  # which is faster to find out
        return found
    for picking in (True, False):
        tree = ast.parse(code)
        before = ast.dump(tree)
        changed = ast.fix_missing_locations(_Turned(picking).visit(tree))
        if ast.dump(changed) != before:
            found.append(ast.unparse(changed))
    return found


class _Turned(ast.NodeTransformer):
    def __init__(self, picking: bool) -> None:
        self._picking = picking

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute):
            return node
        name, given = node.func.attr, {keyword.arg for keyword in node.keywords}
        if name in _BY_FIRST and not node.args:
            if self._picking:
                node.func.value = _reversed(node.func.value)
        elif self._picking:
            return node
        elif name in _KEEPING and "keep" not in given:
            node.keywords.append(ast.keyword("keep", ast.Constant("last")))
        elif name == "sort_values":
            node.func.value = _reversed(node.func.value)
            node.keywords = [keyword for keyword in node.keywords if keyword.arg != "kind"]
            node.keywords.append(ast.keyword("kind", ast.Constant("stable")))
        elif name == "value_counts":
            ascending = ast.keyword("ascending", ast.Constant(False))
            stable = ast.keyword("kind", ast.Constant("stable"))
            sort = ast.Attribute(_reversed(node), "sort_values", ast.Load())
            return ast.Call(sort, [], [ascending, stable])
        return node


def _reversed(node: ast.expr) -> ast.expr:
    backwards = ast.Slice(step=ast.UnaryOp(ast.USub(), ast.Constant(1)))
    return ast.Subscript(ast.Attribute(node, "iloc", ast.Load()), backwards, ast.Load())
