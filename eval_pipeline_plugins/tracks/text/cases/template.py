"""Prompt templates of suites: Jinja without calls, assignments and macros, with limits on loops, work and output.

Suites may come from strangers. Jinja's sandbox prevents access to Python's internals, but does not limit time and
memory; the restrictions here do.
"""

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import Any, NoReturn

from jinja2 import StrictUndefined, TemplateSyntaxError, UndefinedError, nodes
from jinja2.exceptions import SecurityError, TemplateRuntimeError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json

MOST_OUTPUT = 200_000
"""The most characters of a message."""
_MOST_ROUNDS = 10_000
"""The most iterations of all loops of a message together."""
_MOST_WORK = 5_000_000
"""The most characters and items that the filters of a message process."""
_FILTERS = (
    "capitalize",
    "default",
    "first",
    "int",
    "items",
    "last",
    "length",
    "list",
    "lower",
    "reverse",
    "round",
    "sort",
    "string",
    "title",
    "trim",
    "truncate",
    "unique",
    "upper",
)
_TESTS = ("boolean", "defined", "even", "false", "in", "mapping", "none", "number", "odd", "sequence", "string", "true")
_ALLOWED = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.For,
    nodes.If,
    nodes.Name,
    nodes.Const,
    nodes.Tuple,
    nodes.List,
    nodes.CondExpr,
    nodes.Filter,
    nodes.Test,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Slice,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.Add,
    nodes.Sub,
    nodes.Neg,
    nodes.Pos,
    nodes.Keyword,
)
_LOOP = frozenset({"index", "index0", "first", "last", "length", "revindex", "revindex0"})
_ROUNDS = "counted_rounds"
_left: ContextVar[list[int]] = ContextVar("left")
"""Iterations and work that remain for the template being rendered."""


class TemplateError(Exception):
    """A template cannot be used or filled in; the message is one sentence."""


def check_template(source: str) -> None:
    """Raises a TemplateError if a template cannot be used."""
    _compiled(source)


def render(source: str, values: Mapping[str, Json]) -> str:
    """Returns the message that a template makes from a case's values.

    Raises:
        TemplateError: it names a field that the case does not have, or exceeds the limits.
    """
    template = _compiled(source)
    token = _left.set([_MOST_ROUNDS, _MOST_WORK])
    parts: list[str] = []
    size = 0
    try:
        for part in template.generate(dict(values)):
            size += len(part)
            if size > MOST_OUTPUT:
                raise TemplateError(f"the template makes more than {MOST_OUTPUT:,} characters")
            parts.append(part)
    except UndefinedError as error:
        raise TemplateError(f"{error.message}; the case has {', '.join(sorted(values))}") from None
    except (TemplateRuntimeError, SecurityError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise TemplateError(f"the template cannot be filled in: {error}") from None
    finally:
        _left.reset(token)
    return "".join(parts)


class _Environment(ImmutableSandboxedEnvironment):
    """Allows the names, filters and statements above, and looks fields up only in values of the case."""

    def __init__(self) -> None:
        super().__init__(undefined=StrictUndefined, autoescape=False)
        self.globals.clear()
        known = self.filters
        self.filters = {name: _charged(known[name]) for name in _FILTERS}
        self.filters |= {"tojson": _charged(json_text), "join": _join, _ROUNDS: _rounds}
        self.tests = {name: self.tests[name] for name in _TESTS} | _operators(self.tests)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for node in tree.find_all(nodes.Node):
            if isinstance(node, nodes.Tuple | nodes.List) and len(node.items) > 100:
                _refuse(node, "a list has more than 100 items")
            if isinstance(node, nodes.For) and node.recursive:
                _refuse(node, "a recursive loop is not allowed")
            if not isinstance(node, _ALLOWED):
                _refuse(node, f"{_what(node)} is not allowed in a prompt template")
        for loop in tree.find_all(nodes.For):
            loop.iter = nodes.Filter(loop.iter, _ROUNDS, [], [], None, None, lineno=loop.lineno)
        return tree

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, Mapping):
            return obj[attribute] if attribute in obj else self.undefined(obj=obj, name=attribute)
        if attribute in _LOOP and type(obj).__name__ == "LoopContext":
            return getattr(obj, attribute)
        return self.undefined(obj=obj, name=attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, Mapping | list | tuple | str):
            try:
                return obj[argument]
            except (LookupError, TypeError):
                pass
        return self.undefined(obj=obj, name=argument)


@lru_cache(maxsize=64)
def _compiled(source: str) -> Any:
    try:
        return _environment().from_string(source)
    except TemplateSyntaxError as error:
        raise TemplateError(f"the template does not parse, line {error.lineno}: {error.message}") from None
    except RecursionError:
        raise TemplateError("the template is nested too deeply") from None


@lru_cache(maxsize=1)
def _environment() -> _Environment:
    return _Environment()


def _what(node: nodes.Node) -> str:
    return {
        nodes.Call: "a call",
        nodes.Assign: "{% set %}",
        nodes.AssignBlock: "{% set %}",
        nodes.Macro: "{% macro %}",
        nodes.Mul: "'*'",
        nodes.Pow: "'**'",
        nodes.Mod: "'%'",
        nodes.Concat: "'~'",
    }.get(type(node), type(node).__name__)


def _refuse(node: nodes.Node, message: str) -> NoReturn:
    raise TemplateSyntaxError(message, node.lineno)


def _operators(tests: Mapping[str, Any]) -> dict[str, Any]:
    names = ("eq", "ne", "lt", "le", "gt", "ge", "==", "!=", "<", "<=", ">", ">=")
    return {name: tests[name] for name in names if name in tests}


def _spend(place: int, amount: int) -> None:
    left = _left.get()
    left[place] -= amount
    if left[place] < 0:
        what = f"more than {_MOST_ROUNDS:,} rounds of loops" if place == 0 else "too much work for one message"
        raise TemplateRuntimeError(what)


def _charged(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the filter with a charge for the size of its input: characters of a text, items of a list."""

    @wraps(function)
    def charged(*arguments: Any, **named: Any) -> Any:
        for argument in (*arguments, *named.values()):
            _spend(1, _size(argument))
        return function(*arguments, **named)

    return charged


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value) + 1
    if isinstance(value, Mapping):
        return 1 + sum(_size(key) + _size(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return 1 + sum(map(_size, value))
    return 1


def _join(value: Iterable[Any], separator: str = "") -> str:
    parts = [str(part) for part in value]
    _spend(1, sum(map(len, parts)) + len(parts) * (len(separator) + 1))
    return separator.join(parts)


def _rounds(value: Iterable[Any]) -> list[Any]:
    """Yields the items of a loop and counts them."""
    if not isinstance(value, Mapping | list | tuple | str) and not hasattr(value, "__iter__"):
        raise TypeError(f"a loop needs a list, found {type(value).__name__}")
    found = list(value)
    _spend(0, len(found))
    return found
