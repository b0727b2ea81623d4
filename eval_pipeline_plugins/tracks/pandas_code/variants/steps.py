"""Splits trusted codes into steps, so that steps which several of them have in common are computed once.

A mutant differs from its reference code in one place; most of what it computes, the reference code and other mutants
compute too. Only code that consists of assignments to names is split, and only if it calls nothing but functions that
are known to leave their arguments as they are and to return the same each time. Any other code stays whole.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import ModuleType

from eval_pipeline.core.model import Json

_METHODS = frozenset(
    """
    DataFrame DateOffset Grouper Index NamedAgg Series Timedelta Timestamp abs add agg aggregate all any apply
    arange argmax argmin array assign astype average between bfill capitalize cat ceil clip combine_first concat
    contains copy corr count cov cross crosstab cummax cummin cumprod cumsum cut date_range day_name describe diff
    div divide dot drop drop_duplicates droplevel dropna duplicated endswith eq exp expanding explode extract
    extractall factorize ffill fillna filter find findall first floor floor_divide floordiv fullmatch ge get
    get_dummies groupby gt head idxmax idxmin inner interpolate isclose isdigit isfinite isin isna isnan isnull
    isocalendar item join kurt last le len log log10 log2 logical_and logical_not logical_or lower lstrip lt map
    mask match max maximum mean median melt merge min minimum mod mode month_name mul multiply nanmean nanmedian
    nansum ne ngroup nlargest normalize notna notnull nsmallest nth nunique outer pad pct_change percentile pipe
    pivot pivot_table pow prod product qcut quantile rank reindex rename rename_axis repeat replace resample
    reset_index rfind rolling round rpartition rsplit rstrip select select_dtypes sem set_axis set_index shift sign
    size skew slice sort_index sort_values split sqrt squeeze stack startswith std strftime strip sub subtract sum
    swaplevel tail title to_datetime to_dict to_frame to_list to_numeric to_numpy to_period to_timedelta
    to_timestamp tolist total_seconds transform transpose truediv tz_convert tz_localize unique unstack upper
    value_counts var where xs zfill
    """.split()
)
"""Methods of tables, columns, indexes, groups, texts and dates, and functions of pandas and numpy."""
_BEFORE_OUT = {
    **dict.fromkeys("abs ceil exp floor isfinite isnan log log10 log2 logical_not sign sqrt pipe".split(), 1),
    **dict.fromkeys("add all any argmax argmin concat divide dot floor_divide logical_and logical_or max".split(), 2),
    **dict.fromkeys("maximum median min minimum mod multiply nanmedian outer pow round stack subtract".split(), 2),
    **dict.fromkeys("clip cumprod cumsum mean nanmean nansum percentile prod quantile std sum var".split(), 3),
}
"""Positional arguments before the one into which a function of numpy writes; a method of arrays has one fewer."""
_BUILTINS = frozenset("abs bool dict float int len list max min range round set sorted str sum tuple".split())
_MODULES = frozenset({"pd", "np"})
_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
}
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not "}
_WHOLE = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp, ast.BoolOp, ast.JoinedStr)
"""Expressions whose parts are not evaluated exactly once; each is a part of one step."""


class _NotSplitError(Exception):
    """The code has something of which it is not known that it can be shared."""


@dataclass(slots=True)
class Steps:
    """Codes split into steps.

    Attributes:
        functions: texts of functions; each step applies one of them to the values of earlier steps.
        steps: for each step the place of its function, then the numbers of the steps whose values it takes. The first
            steps are the tables, which have no function.
        codes: for each code the steps of its statements, the last one that of its result; the code itself if it stays
            whole.
    """

    functions: list[str] = field(default_factory=list)
    steps: list[list[int]] = field(default_factory=list)
    codes: list[list[int] | str] = field(default_factory=list)

    def told(self) -> Json:
        """Returns it as plain data, without the copies that `asdict` makes."""
        return {"functions": self.functions, "steps": self.steps, "codes": self.codes}


def split(codes: Sequence[str], names: Sequence[str]) -> Steps:
    """Splits codes that parse.

    Args:
        codes: trusted codes.
        names: names of the tables.
    """
    return _split(tuple(codes), tuple(names))


def leaves_nothing(codes: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a suite's own codes are known to leave nothing behind that other code could find in the same process.

    They consist of nothing but assignments and calls that are known to leave everything as it is, and name no other
    function of pandas and numpy, as an attribute or as a text such as in `agg("to_pickle")`. That is for the mistakes
    of who wrote a suite: code that has anything of an answer in it runs alone, whatever it is.

    Args:
        codes: reference code, and what is made of it alone by rule.
        names: names of the tables.
    """
    if any(isinstance(one, str) for one in split(codes, names).codes):
        return False
    return _other_functions().isdisjoint(name for code in codes for name in _mentioned(code))


def _mentioned(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Attribute(attr=str(name)) | ast.Constant(value=str(name)):
                yield name


@lru_cache(maxsize=1)
def _other_functions() -> frozenset[str]:
    """Returns the names of functions and modules of pandas and numpy of which it is not known what they do.

    What these import only when it is asked for, such as `np.f2py`, is among them, and is not imported for that.
    """
    import numpy as np
    import pandas as pd
    from pandas.api import typing

    kinds = (pd.DataFrame, pd.Series, pd.Index, *(one for one in vars(typing).values() if isinstance(one, type)))
    found = {
        name
        for place in (pd, np, *kinds)
        for name in dir(place)
        if (isinstance(place, ModuleType) and name not in vars(place))
        or isinstance(one := getattr(place, name, None), ModuleType)
        or (callable(one) and not isinstance(one, type))
    }
    return frozenset(found - _METHODS)


@lru_cache(maxsize=8)
def _split(codes: tuple[str, ...], names: tuple[str, ...]) -> Steps:
    found = Steps(steps=[[] for _ in names])
    splitter = _Splitter(found, names)
    found.codes = [splitter.code(code) for code in codes]
    return found


class _Splitter:
    """Splits one code after the other; equal functions become one."""

    def __init__(self, found: Steps, names: Sequence[str]) -> None:
        self._found = found
        self._tables = {name: place for place, name in enumerate(names)}
        if len(names) == 1:
            self._tables["df"] = 0
        self._places: dict[str, int] = {}
        self._assigned: dict[str, int] = {}

    def code(self, code: str) -> list[int] | str:
        """Returns the steps of the code's statements, or the code."""
        self._assigned = dict(self._tables)
        statements = []
        try:
            for statement in ast.parse(code).body:
                match statement:
                    case ast.Assign(targets=[ast.Name(id=name)], value=value) if name not in _MODULES | _BUILTINS:
                        statements.append(self._step(value))
                        self._assigned[name] = statements[-1]
                    case _:
                        return code
        except _NotSplitError:
            return code
        return [*statements, self._assigned["result"]] if "result" in self._assigned else code

    def _step(self, node: ast.expr) -> int:
        """Returns the number of the step that computes an expression."""
        if isinstance(node, ast.Name) and node.id in self._assigned:
            return self._assigned[node.id]
        taken: list[int] = []
        text = self._text(node, taken, own=True)
        function = self._places.setdefault(text, len(self._places))
        if function == len(self._found.functions):
            self._found.functions.append(f"lambda {', '.join(f'_{place}' for place in range(len(taken)))}: {text}")
        self._found.steps.append([function, *taken])
        return len(self._found.steps) - 1

    def _text(self, node: ast.expr, taken: list[int], *, own: bool = False) -> str:
        """Returns an expression as text in which `_0`, `_1`, ... stand for the values of the steps that are `taken`.

        Args:
            node: the expression.
            taken: is extended.
            own: whether the expression is in the same step as what it is a part of.
        """
        match node:
            case ast.Constant(value=value):
                return f"({value!r})" if isinstance(value, int | float | complex) else repr(value)
            case ast.Name(id=name) if name in self._assigned:
                return _place(self._assigned[name], taken)
            case ast.Name(id=name) if name in _MODULES | _BUILTINS:
                return name
        if isinstance(node, _WHOLE):
            return self._whole(node, taken)
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict | ast.Slice):
            return self._display(node, taken)
        if not own and any(part.id in self._assigned for part in _names(node)):
            return _place(self._step(node), taken)
        return self._operation(node, taken)

    def _display(self, node: ast.Tuple | ast.List | ast.Set | ast.Dict | ast.Slice, taken: list[int]) -> str:
        """Returns a list or the like as text. It is not a step, so each step gets a new one."""
        match node:
            case ast.Dict(keys=keys, values=values):
                pairs = [(key, value) for key, value in zip(keys, values, strict=True) if key is not None]
                if len(pairs) < len(values):
                    raise _NotSplitError
                told = [f"{self._text(key, taken)}: {self._text(value, taken)}" for key, value in pairs]
                return f"{{{', '.join(told)}}}"
            case ast.Slice(lower=lower, upper=upper, step=step):
                return ":".join("" if part is None else self._text(part, taken) for part in (lower, upper, step))
        parts = "".join(f"{self._text(part, taken)}, " for part in node.elts)
        return (
            f"({parts})"
            if isinstance(node, ast.Tuple)
            else f"[{parts}]"
            if isinstance(node, ast.List)
            else f"{{{parts}}}"
        )

    def _operation(self, node: ast.expr, taken: list[int]) -> str:
        match node:
            case ast.Attribute(value=value, attr=attribute):
                # An attribute is looked up where it is used, as `loc` and `str` are no values.
                return f"{self._text(value, taken, own=isinstance(value, ast.Attribute))}.{attribute}"
            case ast.Subscript(value=table, slice=ast.Tuple(elts=[_, *_] as parts)):
                start = self._text(table, taken, own=isinstance(table, ast.Attribute))
                return f"{start}[{''.join(f'{self._text(part, taken)}, ' for part in parts)}]"
            case ast.Subscript(value=table, slice=key):
                return f"{self._text(table, taken, own=isinstance(table, ast.Attribute))}[{self._text(key, taken)}]"
            case ast.Call(func=called, args=arguments, keywords=keywords) if _is_pure(node):
                given = [self._text(part, taken) for part in arguments]
                given += [f"{one.arg}={self._text(one.value, taken)}" for one in keywords]
                return f"{self._text(called, taken, own=True)}({', '.join(given)})"
            case ast.BinOp(left=left, op=binary, right=right) if type(binary) in _BINARY:
                return f"({self._text(left, taken)} {_BINARY[type(binary)]} {self._text(right, taken)})"
            case ast.Compare(left=left, ops=[compared], comparators=[right]) if type(compared) in _COMPARED:
                return f"({self._text(left, taken)} {_COMPARED[type(compared)]} {self._text(right, taken)})"
            case ast.UnaryOp(op=unary, operand=operand):
                return f"({_UNARY[type(unary)]}{self._text(operand, taken)})"
        raise _NotSplitError

    def _whole(self, node: ast.expr, taken: list[int]) -> str:
        """Returns an expression whose parts are not steps of their own."""
        if not all(map(_is_known, ast.walk(node))):
            raise _NotSplitError
        bound = {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
        bound |= {part.id for part in _names(node) if isinstance(part.ctx, ast.Store)}
        free = [part for part in _names(node) if part.id not in bound]
        known = _MODULES | _BUILTINS
        if bound & {*self._assigned, *known} or any(one.id not in {*self._assigned, *known} for one in free):
            raise _NotSplitError
        for name in free:
            if name.id in self._assigned:
                name.id = _place(self._assigned[name.id], taken)
        return f"({ast.unparse(node)})"


def _place(number: int, taken: list[int]) -> str:
    """Returns the name of a step's value in the step that takes it."""
    if number not in taken:
        taken.append(number)
    return f"_{taken.index(number)}"


def _names(node: ast.AST) -> Iterator[ast.Name]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Name))


def _is_known(node: ast.AST) -> bool:
    """Whether a part of an expression that stays whole changes nothing by itself but names of its own."""
    match node:
        case ast.Call():
            return _is_pure(node)
        case ast.comprehension(target=target):  # nothing else in an expression assigns to an attribute or an item
            return all(isinstance(part, ast.Name | ast.Tuple | ast.expr_context) for part in ast.walk(target))
    return True


def _is_pure(call: ast.Call) -> bool:
    """Whether a call is known to leave its arguments as they are and to return the same each time."""
    if any(one.arg in (None, "inplace", "out") for one in call.keywords):
        return False
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return False
    match call.func:
        case ast.Name(id=name):
            return name in _BUILTINS
        case ast.Attribute(value=ast.Name(id="np"), attr=name):
            most = _BEFORE_OUT.get(name, len(call.args))
        case ast.Attribute(attr=name):
            most = max(1, _BEFORE_OUT.get(name, len(call.args) + 1) - 1)
        case _:
            return False
    return name in _METHODS and len(call.args) <= most
