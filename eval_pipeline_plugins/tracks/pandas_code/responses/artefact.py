"""Extracts the code from a response."""

import ast
import builtins
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eval_pipeline.core.model import ErrorClass, Json
from eval_pipeline.core.values import value
from eval_pipeline.tracks.base import ArtefactError
from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import argument, bound_names, keyword, links, parse, root
from eval_pipeline_plugins.tracks.pandas_code.cases.closed_answers import answers_in
from eval_pipeline_plugins.tracks.pandas_code.responses.notebook import plain_python

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


# Responses may be long and hostile: no expression here may scan the same text again from each line or character.
_FENCE = re.compile(
    r"^[ \t]*+(?P<ticks>`{3,}+|~{3,}+)[ \t]*+(?P<word>[\w+-]*+)[^\n]*+\n"
    r"(?P<code>.*?)(?:(?P<end>^[ \t]*(?P=ticks)[ \t]*$)|\Z)",
    re.M | re.S,
)
_PYTHON = frozenset({"", "python", "python3", "py", "ipython", "ipython3", "pycon"})
_STATEMENT = re.compile(
    r"^[ \t]*(?:import |from |result\b|[A-Za-z_][\w.\[\]'\", ]*=(?!=)|[A-Za-z_][\w.]*\(|def |for |with )", re.M
)
_MOST = 200_000


@value
class Code:
    """The answer of a model.

    Attributes:
        code: Python code; empty if a recorded answer was a plain value.
        answer: a recorded answer in the form `@name[value]`; None for code.
        notes: sentences on what of the response is not in the code, or was joined to it.
    """

    code: str
    answer: str | None = None
    notes: tuple[str, ...] = ()


def parse_code(text: str, *, recorded: bool = False) -> Code:
    """Returns the code in a response: a fenced block, or the whole text if there is no fence and it looks like Python.

    Of several blocks, the last one that sets `result` is used, else the last one of Python, with earlier ones that it
    builds on. What only a notebook understands is left out (`notebook.py`). A block at the end of the
    response that does not parse was cut off, and is ignored if there is an earlier one. A recorded answer may also be
    `@name[value]` without any code, as in data sets with closed answers.

    Raises:
        ArtefactError: the response is empty, too long, or has no code.
    """
    if not text.strip():
        raise ArtefactError(ErrorClass.VALUE, "the response is empty")
    if len(text) > _MOST:
        raise ArtefactError(ErrorClass.VALUE, f"the response has more than {_MOST:,} characters")
    found = [block for block in _FENCE.finditer(text) if block["word"].lower() in _PYTHON]
    if found:
        read = [plain_python(_outdented(block["code"].strip("\n"))) for block in found]
        if len(read) > 1 and found[-1]["end"] is None and parse(read[-1][0]) is None:
            read.pop()  # it was cut off, and there is a complete one before it
        code, joined = program_of([code for code, _ in read])
        notes = dict.fromkeys(note for _, notes in read for note in notes)
        told = [f"{joined} earlier block{'s' * (joined > 1)} of code on which the last one builds"] if joined else []
        return Code(code, notes=(*notes, *told))
    if recorded and answers_in(text) and not sets_result(text):
        return Code("", text.strip())
    code, left_out = plain_python(_outdented(text.strip("\n")))
    if not _STATEMENT.search(code):
        raise ArtefactError(ErrorClass.SYNTAX, "there is no code: expected a block of Python that sets `result`")
    return Code(code, notes=left_out)


def _outdented(code: str) -> str:
    """Returns code without an indentation that all its lines share, e.g. that of a list in which its block stands."""
    less = textwrap.dedent(code)
    return code if less == code or parse(less) is None else less


def code_json(found: Code) -> Json:
    """Returns the artefact as JSON."""
    told: dict[str, Json] = {"code": found.code} if found.answer is None else {"answer": found.answer}
    return told | ({"notes": list(found.notes)} if found.notes else {})


def code_from_json(told: Mapping[str, Json]) -> Code:
    """Reads an artefact that `code_json` wrote."""
    return Code(told.get("code", ""), told.get("answer"), tuple(told.get("notes", ())))


def fenced(code: str) -> str:
    """Returns code in the form of a response."""
    return f"```python\n{code.strip()}\n```"
