"""Decides which blocks of a response are its program: the last one that sets `result`, with those it builds on."""

import ast
import builtins
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import argument, bound_names, keyword, links, parse, root

_SETS_RESULT = re.compile(r"^[ \t]*result\b[^=\n]*=(?!=)", re.M)
_GIVEN = frozenset({"pd", "np", *dir(builtins)})
_READS = "read_"
_LITERAL = (ast.Dict, ast.List, ast.Tuple, ast.Constant, ast.UnaryOp, ast.unaryop, ast.expr_context)


@dataclass(frozen=True, slots=True)
class _Block:
    """What a block of code does with names.

    Attributes:
        free: names that it reads before it gives them a value.
        made: names to which it gives a value, or whose value it changes.
        imports: import statements by the name that they define.
    """

    free: frozenset[str]
    made: frozenset[str]
    imports: Mapping[str, str]


def sets_result(code: str) -> bool:
    """Returns whether code looks as if it set `result`."""
    return _SETS_RESULT.search(code) is not None


def program_of(blocks: Sequence[str]) -> tuple[str, int]:
    """Returns the program that a response with several blocks means, and the number of earlier blocks in it.

    It is the last block that sets `result` (else the last one) with those earlier ones that define names which it
    needs. A block that sets `result` from what is given stands for itself, so that it only belongs to a later one that
    needs a name of its own. Frames that are read from files or written out as literals stand for the given tables.
    """
    last = max((place for place, code in enumerate(blocks) if sets_result(code)), default=len(blocks) - 1)
    read = _read(blocks[last])
    if read is None:
        return blocks[last], 0
    needed, parts, joined = set(read.free), [blocks[last]], 0
    for code in reversed(blocks[:last]):
        earlier = _read(code)
        if earlier is None:
            continue
        if needed & (earlier.made - earlier.free if sets_result(code) else earlier.made):
            parts.append(code)
            joined += 1
            needed = (needed - earlier.made - earlier.imports.keys()) | earlier.free
        elif lines := [line for name, line in earlier.imports.items() if name in needed]:
            parts.append("\n".join(dict.fromkeys(lines)))
            needed -= earlier.imports.keys()
    return "\n\n".join(reversed(parts)), joined


def _read(code: str) -> _Block | None:
    tree = parse(code)
    if tree is None:
        return None
    free, made, known, literals, imports = set[str](), set[str](), set[str](), set[str](), dict[str, str]()
    for node in tree.body:
        bound = set(bound_names(node))
        free |= _loaded(node) - known
        known |= bound
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports |= dict.fromkeys(bound, ast.unparse(node))
        elif not _is_a_given_table(node, literals):
            made |= bound | set(_changed(node))
        if isinstance(node, ast.Assign) and _is_literal(node.value):
            literals |= bound
    return _Block(
        frozenset(free - _GIVEN), frozenset(made), {n: line for n, line in imports.items() if n not in _GIVEN}
    )


def _loaded(node: ast.stmt) -> set[str]:
    """Returns the names whose values a statement reads from before it; an assignment reads before it writes."""
    inside = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else node
    own = set() if inside is None or isinstance(node, ast.AugAssign) else set(bound_names(inside))
    return {name for part in ast.walk(node) for name in _read_names(part, node)} - own


def _read_names(part: ast.AST, statement: ast.stmt) -> Iterator[str]:
    match part:
        case ast.Name(id=name, ctx=ast.Load()):
            yield name
        case ast.Name(id=name) if isinstance(statement, ast.AugAssign) and part is statement.target:
            yield name


def _changed(node: ast.stmt) -> Iterator[str]:
    """Yields the names of what a statement changes in place: `x["a"] = 1`, `x.columns = …`, `x.sort(inplace=True)`."""
    for part in ast.walk(node):
        match part:
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                start = root(part)
            case ast.Call() if keyword(part, "inplace") is not None:
                start = root(part)
            case ast.Expr(value=ast.Call(func=ast.Attribute()) as call):
                start = root(call)
            case _:
                continue
        if isinstance(start, ast.Name):
            yield start.id


def _is_a_given_table(node: ast.stmt, literals: set[str]) -> bool:
    """Returns whether a statement reads a file, or writes out a frame: both stand for a table that is given."""
    if not isinstance(node, ast.Assign):
        return False
    for link in links(node.value):
        match link:
            case ast.Call(func=ast.Attribute(attr=name)) if name.startswith(_READS):
                return True
            case ast.Call(func=ast.Attribute(attr="DataFrame")):
                data = argument(link, 0, "data")
                return data is not None and (_is_literal(data) or (isinstance(data, ast.Name) and data.id in literals))
    return False


def _is_literal(node: ast.expr) -> bool:
    return all(isinstance(part, _LITERAL) for part in ast.walk(node))
