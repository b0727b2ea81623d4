"""Makes mutants of code with elements that another code has: the mistakes that its author may have made."""

import ast
import copy
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from eval_pipeline_plugins.tracks.pandas_code.variants.mutants.elements import (
    CALL,
    COLUMN,
    FLAG,
    Element,
    Key,
    called,
    counted,
    elements,
    option_kind,
)
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants.making import made, mutants_of
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants.mutant import Kind, Known, Mutant, missing, pretty
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants.ratios import ratio_changes

_DEFAULTS: Mapping[str, object] = {
    "how": "inner",
    "right": True,
    "ascending": True,
    "keep": "first",
    "case": True,
    "dropna": True,
    "closed": "left",
    "method": "average",
    "fill_value": None,
}
_STEPS: Mapping[str, Kind] = {
    **dict.fromkeys(("sort_values", "sort_index"), Kind.SORT),
    **dict.fromkeys(("head", "tail", "nlargest", "nsmallest"), Kind.LIMIT),
    **dict.fromkeys(("groupby",), Kind.GROUPING),
    **dict.fromkeys(("dropna", "drop_duplicates", "fillna", "ffill", "bfill", "abs", "round", "unique"), Kind.STEP),
    **dict.fromkeys(("strip", "lstrip", "rstrip", "lower", "upper", "title", "replace", "clip"), Kind.STEP),
    **dict.fromkeys(("normalize", "shift", "diff", "pct_change", "cumsum", "cummax", "rank", "astype"), Kind.STEP),
    **dict.fromkeys(
        ("tz_convert", "tz_localize", "floor", "ceil", "explode", "interpolate", "asfreq", "reindex"), Kind.STEP
    ),
    **dict.fromkeys(("cummin", "cumprod", "where", "mask", "between_time", "casefold", "capitalize"), Kind.STEP),
}
_TURNED: Mapping[str, Mapping[str, ast.keyword]] = {
    "cut": {"right=False": ast.keyword("right", ast.Constant(False))},
    "resample": {"closed='right'": ast.keyword("closed", ast.Constant("right"))},
}
"""Options that codes of another form express otherwise."""
_TESTS = frozenset({"isin", "isna", "notna", "between"})
_PLAIN = (ast.Compare, ast.UnaryOp, ast.Call, ast.Attribute, ast.Subscript, ast.Name, ast.Constant, ast.List, ast.Tuple)
"""Of what a condition may consist that comes from other code: nothing that can do more than compare."""
_TELLING = (ast.Compare, ast.Call, ast.keyword, ast.BinOp)
_WINDOWS = frozenset({"rolling", "expanding", "resample", "ewm"})
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Ranked:
    """A mutant, and how much it has more (less, if negative) elements that the other code lacks, or lacks of it."""

    rank: int
    mutant: Mutant


def lent_mutants(code: str, other: str, known: Known, own: Sequence[Mutant] | None = None) -> list[Ranked]:
    """Returns mutants of code, those first that make it more like the other code.

    They are those of `mutants_of`, those in which an element is exchanged by one that the other code has, those with
    a condition on rows of a given table that the other code has, and those without a step.

    Args:
        code: code that parses, in the normal form.
        other: code that parses, in the normal form; nothing of it but single constants and names, and comparisons of
            columns with constants, comes into a mutant.
        known: columns and texts of the tables.
        own: the mutants of code, if they are known.
    """
    columns = {name for table in known.tables.values() for name in table}
    tree, theirs = ast.parse(code), [*elements(ast.parse(other), columns)]
    had, lack = counted(tree, columns), Counter(one.key for one in theirs)
    lack.subtract(had)
    lines = _Lines(ast.unparse(tree), had, columns)
    seen, found = {ast.unparse(tree)}, []
    mutants = chain(
        _options(tree, ast.parse(other)),
        mutants_of(code, known) if own is None else own,
        made(tree, ratio_changes(tree, known)),
        _exchanged(tree, theirs, columns),
        _conditioned(tree, ast.parse(other), known),
        _without_steps(tree),
    )
    for mutant in mutants:
        if mutant.code not in seen:
            seen.add(mutant.code)
            change = lines.change(mutant.code)
            found.append(Ranked(sum(abs(lack[key] - by) - abs(lack[key]) for key, by in change.items()), mutant))
    return sorted(found, key=lambda one: one.rank)


class _Lines:
    """Counts how the elements of code change; a line that a mutant shares with it is not read again.

    Args:
        code: as `ast.unparse` writes it.
        had: its elements.
        columns: as for `counted`.
    """

    def __init__(self, code: str, had: Counter[Key], columns: Collection[str]) -> None:
        self._lines, self._had, self._columns = Counter(code.split("\n")), had, columns
        self._read: dict[str, Counter[Key] | None] = {}

    def change(self, code: str) -> Counter[Key]:
        """Returns by how much each element occurs more often in other code that `ast.unparse` wrote."""
        theirs = Counter(code.split("\n"))
        more, less = theirs - self._lines, self._lines - theirs
        parts = [(self._of(line), lines[line] * sign) for lines, sign in ((more, 1), (less, -1)) for line in lines]
        change: Counter[Key] = Counter()
        for found, times in parts:
            if found is None:
                change = counted(ast.parse(code), self._columns)
                change.subtract(self._had)
                return change
            for key, count in found.items():
                change[key] += count * times
        return change

    def _of(self, line: str) -> Counter[Key] | None:
        """Returns the elements of a line; None if it is no statement, but a part of one."""
        if line not in self._read:
            try:
                self._read[line] = counted(ast.parse(line), self._columns)
            except SyntaxError:
                self._read[line] = None
        return self._read[line]


def _exchanged(tree: ast.Module, theirs: list[Element], columns: Collection[str]) -> Iterator[Mutant]:
    offered: dict[str, dict[str, object]] = {}
    for one in theirs:
        offered.setdefault(one.family, {})[one.key[1]] = one.value
    outer = {inner: node for node in ast.walk(tree) for inner in ast.iter_child_nodes(node)}
    for place, element in enumerate([one for one in elements(tree, columns) if one.parent is not None]):
        values = {"": not element.value} if element.family == FLAG else offered.get(element.family, {})
        for value in values.values():
            if value != element.value or type(value) is not type(element.value):
                yield _with(tree, outer, element, value, place)


def _with(tree: ast.Module, outer: Mapping[ast.AST, ast.AST], element: Element, value: object, place: int) -> Mutant:
    held = element.held
    shown = _around(outer, element)
    was = _shown(shown, element)
    element.put(value)
    try:
        now, code = _shown(shown, element), ast.unparse(tree)
    finally:
        element.put(held)
    return Mutant(element.kind(value), f"{was} #{place}", False, f"`{was}` were `{now}`", code)


def _around(outer: Mapping[ast.AST, ast.AST], element: Element) -> ast.AST:
    """Returns the smallest piece of code that says what an element is for, given the node around each node."""
    assert element.parent is not None
    inner, node = None, element.parent
    while not (isinstance(node, _TELLING) and not (isinstance(node, ast.Call) and inner is node.func)):
        inner = node
        if node not in outer:
            return element.parent
        node = outer[node]
    return node


def _shown(node: ast.AST, element: Element) -> str:
    if element.field == "attr":
        return str(getattr(element.parent, "attr", ""))
    if isinstance(node, ast.Call):
        node = ast.Call(ast.Name(called(node.func), ast.Load()), node.args, node.keywords)
    text, held = pretty(node), element.held
    if isinstance(held, ast.Constant) and (len(text) > _LONGEST or isinstance(node, ast.Subscript)):
        return str(held.value) if element.family == COLUMN else repr(held.value)
    return text


def _conditioned(tree: ast.Module, other: ast.Module, known: Known) -> Iterator[Mutant]:
    """Yields the code with one more condition on the rows of a given table, from its first line on.

    Not on a column on which it has a condition, which then is another one.
    """
    alias = ("df",) if len(known.tables) == 1 else ()
    compared = {text for mask in ast.walk(tree) if isinstance(mask, ast.Compare) for text in _texts_in(mask)}
    for node in ast.walk(other):
        for condition in _conditions(node.slice) if isinstance(node, ast.Subscript) else ():
            name = _table_of(condition, known)
            if name and not compared & _texts_in(condition) & known.tables[name].keys():
                targets: list[ast.expr] = [ast.Name(one, ast.Store()) for one in (name, *alias)]
                rows = ast.Subscript(ast.Name(name, ast.Load()), _on(condition, name), ast.Load())
                first = ast.fix_missing_locations(ast.Assign(targets, rows))
                code = ast.unparse(ast.Module([first, *tree.body], []))
                text = pretty(condition)
                yield Mutant(Kind.FILTER, f"{text} of {name}", False, f"`{text}` were added", code)


def _texts_in(node: ast.AST) -> set[str]:
    return {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def _conditions(mask: ast.expr) -> Iterator[ast.expr]:
    match mask:
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
            yield from _conditions(left)
            yield from _conditions(right)
        case ast.Compare() | ast.Call() | ast.UnaryOp(op=ast.Invert()):
            yield mask


def _table_of(condition: ast.expr, known: Known) -> str | None:
    """Returns the given table of which a condition compares columns with constants; None if it is another thing."""
    bases, columns, names = [], set(), 0
    for node in ast.walk(condition):
        match node:
            case ast.Subscript(value=ast.Name(id=base), slice=ast.Constant(value=str() as column)):
                bases.append(base)
                columns.add(column)
            case ast.Name():
                names += 1
            case ast.Attribute(attr=name) if name not in _TESTS:
                return None
            case ast.expr() if not isinstance(node, _PLAIN):
                return None
    tables = [name for name, dtypes in known.tables.items() if columns and columns <= dtypes.keys()]
    if len(set(bases)) != 1 or names != len(bases) or not tables:
        return None
    return next((name for name in tables if name in bases), tables[0] if len(tables) == 1 else None)


def _on(condition: ast.expr, table: str) -> ast.expr:
    """Returns the condition on another name of the table that it reads."""
    found = copy.deepcopy(condition)
    for node in ast.walk(found):
        if isinstance(node, ast.Name):
            node.id = table
    return found


def _without_steps(tree: ast.Module) -> Iterator[Mutant]:
    """Yields the code without a call of a chain, a window with its statistic, or a condition on rows."""
    for node in [*ast.walk(tree)]:
        for field, held in ast.iter_fields(node):
            for index, child in enumerate(held) if isinstance(held, list) else [(None, held)]:
                if isinstance(child, ast.expr) and (found := _shorter(child)) is not None:
                    kind, words, by = found
                    place = Element("", None, node, field, index, "")
                    place.put(by)
                    code = ast.unparse(tree)
                    place.put(child)
                    yield Mutant(kind, words, True, words, code)


def _shorter(node: ast.expr) -> tuple[Kind, str, ast.expr] | None:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Attribute(value=inner, attr=outer)) as window)):
            if outer in _WINDOWS:
                text = f"{_call_text(window)}.{_call_text(node)}"
                return Kind.DERIVED, f"`{text}` were missing", inner
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _STEPS:
            whole = inner.value if isinstance(inner, ast.Attribute) and inner.attr in ("str", "dt") else inner
            return _STEPS[name], f"`{_call_text(node)}` were missing", whole
        case ast.Subscript(value=table, slice=ast.Lambda(body=mask), ctx=ast.Load()):
            return Kind.FILTER, missing(mask), table
        case ast.Subscript(value=table, slice=ast.Slice(), ctx=ast.Load()):
            return Kind.LIMIT, f"`[{ast.unparse(node.slice)}]` were missing", table
        case ast.Subscript(value=table, slice=ast.BinOp(op=ast.BitAnd() | ast.BitOr()) as mask, ctx=ast.Load()):
            return Kind.FILTER, missing(mask), table
    return None


def _call_text(node: ast.Call) -> str:
    return pretty(ast.Call(ast.Name(called(node.func), ast.Load()), node.args, node.keywords))


def _options(tree: ast.Module, other: ast.Module) -> Iterator[Mutant]:
    """Yields the code without a keyword argument, or with one that the other code gives to the same function."""
    given: dict[str, dict[str, ast.keyword]] = {}
    for call in _calls(other):
        for word in call.keywords:
            if word.arg is not None and _is_literal(word.value):
                given.setdefault(called(call.func), {})[f"{word.arg}={ast.unparse(word.value)}"] = word
    for place, call in enumerate(_calls(tree)):
        had = call.keywords
        for number, word in enumerate(had):
            if word.arg is not None and _is_literal(word.value):
                call.keywords = [*had[:number], *had[number + 1 :]]
                yield _option(tree, word, None, place)
        offered = {**_TURNED.get(called(call.func), {}), **given.get(called(call.func), {})}
        for text, word in offered.items():
            before = next((one for one in had if one.arg == word.arg), None)
            # A constant is an element of its own, which is exchanged as such.
            if before is None or (isinstance(before.value, ast.List) and ast.unparse(before) != text):
                call.keywords = [*(one for one in had if one is not before), word]
                yield _option(tree, before, word, place)
        call.keywords = had


def _option(tree: ast.Module, was: ast.keyword | None, now: ast.keyword | None, place: int) -> Mutant:
    name = str((was or now).arg)  # type: ignore[union-attr]
    usual = f"`{name}={_DEFAULTS[name]!r}`" if name in _DEFAULTS else ""
    before, after = (f"`{name}={ast.unparse(one.value)}`" if one else usual for one in (was, now))
    if name == "how":
        before, after = (f"the {text[6:-2]} join" for text in (before, after))
    words = f"{before} were {after or 'missing'}" if before else f"{after} were added"
    return Mutant(option_kind(name), f"{name} #{place}", not after, words, ast.unparse(tree))


def _calls(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _is_literal(node: ast.expr) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return all(isinstance(part, ast.Constant) for part in parts)
    return False


def shared(code: str, other: str, known: Known) -> float:
    """Returns the share of the elements of code that another code has too; arguments as for `lent_mutants`."""
    columns = {name for table in known.tables.values() for name in table}
    mine, theirs = counted(ast.parse(code), columns), counted(ast.parse(other), columns)
    return (mine & theirs).total() / max(1, mine.total())


def requirement_count(code: str, known: Known) -> int:
    """Returns how many elements and steps code has that could be missing or different.

    Args:
        code: code that parses, in the normal form.
        known: columns and texts of the tables.
    """
    columns = {name for table in known.tables.values() for name in table}
    tree = ast.parse(code)
    steps = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.expr) and _shorter(node)}
    return sum(not family.startswith(CALL) for family, _ in counted(tree, columns)) + len(steps)
