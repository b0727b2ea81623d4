"""The named elements of code: columns, constants, comparisons, operators, statistics, parts of dates, options.

An element is what one step of mending may change. It knows where it stands, so that it can be exchanged in place.
"""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from eval_pipeline_plugins.tracks.pandas_code.variants.mutants.mutant import Kind

COLUMN, NUMBER, TEXT, DATE, FLAG = "column", "number", "text", "date", "flag"
COMPARISON, JUNCTION, ARITHMETIC, CALL = "comparison", "junction", "arithmetic", "call"
_FAMILIES: Mapping[str, frozenset[str]] = {
    "statistic": frozenset(
        "sum mean median max min count size nunique std var first last any all prod idxmax idxmin mode "
        "cumsum cummax cummin cumprod cumcount skew sem".split()
    ),
    "part": frozenset(
        "year month day hour minute second quarter week dayofweek weekday dayofyear date day_name month_name "
        "days seconds".split()
    ),
    "end": frozenset("head tail nlargest nsmallest".split()),
    "test": frozenset("contains startswith endswith match fullmatch".split()),
    "letters": frozenset("lower upper title capitalize".split()),
    "space": frozenset("strip lstrip rstrip".split()),
    "filling": frozenset("ffill bfill".split()),
    "change": frozenset("shift diff pct_change".split()),
    "missing": frozenset("isna notna".split()),
}
FAMILY = {name: family for family, names in _FAMILIES.items() for name in names}
"""The family of a method or attribute: one of it may stand where another one does."""
_DATE = re.compile(r"\d{4}-\d\d(-\d\d)?([ T]\d\d:\d\d.*)?")
_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("groupby", "pivot_table", "crosstab", "value_counts", "by", "index", "columns"), Kind.GROUPING),
    **dict.fromkeys(("merge", "join", "on", "left_on", "right_on", "how"), Kind.JOIN),
    **dict.fromkeys(("sort_values", "sort_index", "ascending"), Kind.SORT),
    **dict.fromkeys(("head", "tail", "nlargest", "nsmallest", "slice", "n", "iloc"), Kind.LIMIT),
    **dict.fromkeys(("right", "closed", "inclusive", "include_lowest", "label", "side"), Kind.BOUNDARY),
    **dict.fromkeys(("", "compare", "isin", "contains", "startswith", "endswith", "match", "map"), Kind.CONSTANT),
    **dict.fromkeys(("Timestamp", "to_datetime", "Timedelta", "days", "hours", "minutes", "where"), Kind.CONSTANT),
    **dict.fromkeys(("arithmetic", "cut", "qcut", "bins", "quantile", "q", "fillna", "round", "clip"), Kind.CONSTANT),
    **dict.fromkeys(("case", "regex"), Kind.FILTER),
    **dict.fromkeys(("keep", "drop_duplicates", "dropna", "replace", "strip"), Kind.STEP),
}
_FAMILY_KINDS: Mapping[str, Kind] = {
    "statistic": Kind.AGGREGATION,
    "end": Kind.LIMIT,
    **dict.fromkeys(("test", "missing", JUNCTION), Kind.FILTER),
    **dict.fromkeys(("letters", "space", "filling"), Kind.STEP),
}
_FREQUENT = frozenset("resample freq to_period rolling asfreq floor ceil date_range rule window".split())
_GROUPED = frozenset({"groupby", "pivot_table", "crosstab", "pivot", "drop_duplicates"})
_STRICT = {ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Lt: ast.LtE, ast.LtE: ast.Lt}

Key = tuple[str, str]
"""Class and value of an element, as it is counted."""


@dataclass(slots=True)
class Element:
    """One element, and the place where it stands.

    Attributes:
        family: elements of the same family may stand for each other.
        value: a constant, the name of a method or attribute, or the class of an operator.
        parent: the node that has it, in `field`, at `index` if that is a list; None where it cannot be exchanged.
        role: the call, keyword or operation in which it stands, which says what it is for.
    """

    family: str
    value: Any
    parent: ast.AST | None
    field: str
    index: int | None
    role: str

    @property
    def key(self) -> Key:
        """What is counted."""
        return self.family, str(getattr(self.value, "__name__", self.value))

    def put(self, value: Any) -> None:
        """Puts another value, or a node, in its place."""
        held = getattr(self.parent, self.field)
        if isinstance(value, type):
            value = value()
        elif not isinstance(value, ast.AST) and isinstance(self._held(), ast.AST):
            value = ast.Constant(value)
        if self.index is None:
            setattr(self.parent, self.field, value)
        else:
            held[self.index] = value

    def _held(self) -> Any:
        held = getattr(self.parent, self.field)
        return held if self.index is None else held[self.index]

    @property
    def held(self) -> Any:
        """What stands there."""
        return self._held()

    def kind(self, by: Any) -> Kind:
        """Returns the kind of requirement that is altered where another value stands there."""
        if self.family == COMPARISON:
            return Kind.BOUNDARY if _STRICT.get(self.value) is by else Kind.FILTER
        if self.family == COLUMN:
            found = _KINDS.get(self.role, Kind.COLUMN)
            return found if found in (Kind.GROUPING, Kind.JOIN) else Kind.COLUMN
        return _FAMILY_KINDS.get(self.family) or _KINDS.get(self.role, Kind.DERIVED)


def option_kind(name: str) -> Kind:
    """Returns the kind of requirement that a keyword argument expresses."""
    return _KINDS.get(name, Kind.DERIVED)


def counted(tree: ast.AST, columns: Collection[str]) -> Counter[Key]:
    """Returns how often each element occurs in code."""
    return Counter(one.key for one in elements(tree, columns))


def elements(tree: ast.AST, columns: Collection[str]) -> Iterator[Element]:
    """Yields the elements of code in the normal form.

    Args:
        tree: the syntax tree; elements refer to its nodes.
        columns: names of the columns of the tables.
    """
    yield from _within(tree, "", columns)


def _within(node: ast.AST, role: str, columns: Collection[str]) -> Iterator[Element]:
    for field, held in ast.iter_fields(node):
        if not isinstance(held, list | ast.AST) or isinstance(held, ast.expr_context | ast.operator):
            continue
        inner = _role(node, field, role)
        for index, child in enumerate(held) if isinstance(held, list) else [(None, held)]:
            if isinstance(child, ast.Constant):
                if (found := _constant(child, node, inner, columns)) is not None:
                    yield Element(*found, node, field, index, inner)
            elif isinstance(child, ast.AST) and not _is_always(child):
                yield from _operation(child, role)
                yield from _within(child, inner, columns)


def _is_always(node: ast.AST) -> bool:
    """Whether a condition is always true, as mutants write one that is missing: it has nothing that counts."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and ast.unparse(node.right) == "True"


def _role(node: ast.AST, field: str, outer: str) -> str:
    """Returns what the parts of a node in a field are for."""
    match node:
        case ast.Call(func=func) if field in ("args", "keywords"):
            return called(func) or outer
        case ast.keyword(arg=str() as name) if name in ("by", "index", "columns") and outer not in _GROUPED:
            return outer
        case ast.keyword(arg=str() as name):
            return outer if outer in ("assign", "agg") else name
        case ast.Compare():
            return "compare"
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr()) | ast.List() | ast.Tuple() | ast.Dict():
            return outer
        case ast.BinOp():
            return "arithmetic"
        case ast.Slice():
            return "slice"
        case ast.Subscript(value=ast.Attribute(attr="str" | "iloc" as name)) if field == "slice":
            return name
        case ast.Subscript() | ast.Attribute() | ast.Lambda() | ast.stmt() | ast.Call():
            return ""
    return outer


def _constant(node: ast.Constant, parent: ast.AST, role: str, columns: Collection[str]) -> tuple[str, Any] | None:
    value = node.value
    match value:
        case bool():
            return FLAG, value
        case int() | float():
            return NUMBER, value
        case str() if role in ("query", "eval") or isinstance(parent, ast.JoinedStr | ast.FormattedValue | ast.Expr):
            return None
        case str() if value in columns:
            stored = isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store)
            return None if stored else (COLUMN, value)
        case str() if FAMILY.get(value) == "statistic" and role not in ("method", "interpolation"):
            return "statistic", value
        case str() if _DATE.fullmatch(value):
            return DATE, value
        case str():
            return f"{TEXT} of {_text_role(role)}", value
    return None


def _text_role(role: str) -> str:
    if role in _FREQUENT:
        return "frequency"
    return "condition" if _KINDS.get(role) is Kind.CONSTANT else role


def _operation(node: ast.AST, role: str) -> Iterator[Element]:
    match node:
        case ast.Compare(ops=ops):
            for index, op in enumerate(ops):
                if not isinstance(op, ast.In | ast.NotIn | ast.Is | ast.IsNot):
                    yield Element(COMPARISON, type(op), node, "ops", index, role)
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr() as op):
            yield Element(JUNCTION, type(op), node, "op", None, role)
        case ast.BoolOp(op=op):
            yield Element(JUNCTION, ast.BitAnd if isinstance(op, ast.And) else ast.BitOr, None, "", None, role)
        case ast.BinOp(op=op):
            yield Element(ARITHMETIC, type(op), node, "op", None, role)
        case ast.Attribute(attr=name) if name in FAMILY:
            yield Element(FAMILY[name], name, node, "attr", None, name)
        case ast.Attribute(attr=name):
            yield Element(f"{CALL} {name}", name, node, "attr", None, name)
        case ast.Call(func=ast.Name(id="len" | "sum" | "max" | "min" as name)):
            yield Element("statistic", {"len": "count"}.get(name, name), None, "", None, name)


def called(func: ast.expr) -> str:
    """Returns the name of a called function or method."""
    match func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""
