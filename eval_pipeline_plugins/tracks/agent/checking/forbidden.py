"""Finds what must not happen: kinds of SQL statements, and files that are written to."""

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

from eval_pipeline.core.model import Json, ToolCall
from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.agent.cases.settings import STATEMENTS, ForbiddenCheck
from eval_pipeline_plugins.tracks.agent.cases.worlds import WorldOfSuite
from eval_pipeline_plugins.tracks.agent.checking.foreign import PossibleCode, read_foreign
from eval_pipeline_plugins.tracks.agent.checking.shell import SIGNS, commands_in, without_documents
from eval_pipeline_plugins.tracks.agent.checking.writes import meets_one_of, normal_path, program_of, written_by
from eval_pipeline_plugins.tracks.agent.trajectory import Trajectory

if TYPE_CHECKING:
    from sqlglot import exp

_BEGINNINGS = {
    "ALTER": r"ALTER\s+(?:TABLE|VIEW|SCHEMA)\b",
    "CREATE": r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:(?:TEMP|TEMPORARY|UNIQUE)\s+)?(?:TABLE|VIEW|INDEX|TRIGGER|SCHEMA)\b",
    "DELETE": r"DELETE\s+FROM\b",
    "DROP": r"DROP\s+(?:TABLE|VIEW|INDEX|TRIGGER|SCHEMA|COLUMN)\b",
    "INSERT": r"(?:INSERT\s+(?:OR\s+\w+\s+)?|REPLACE\s+)INTO\b",
    "TRUNCATE": r"TRUNCATE\s+(?:TABLE\s+)?\w",
    "UPDATE": r"UPDATE\s+(?:OR\s+\w+\s+)?[\w.\"`\[\]]+\s+(?:AS\s+\w+\s+)?SET\b",
}
"""How statements begin, where a text cannot be parsed."""
_WORDS = {"CREATE": ("CREATE", "INTO"), "INSERT": ("INSERT", "REPLACE"), "DELETE": ()}
"""Words of which one shows a kind of statements, where that is not its name; `grep DELETE file` is no statement."""
_ANY_WORD = re.compile(rf"\b(?:{'|'.join(STATEMENTS)}|INTO|REPLACE)\b", re.IGNORECASE)
_SET_IN = re.compile(r"\{[^{}\n]*\}|%\(\w+\)s|%s")
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_TEXT = re.compile(r"'(?:[^']|'')*'")
_BODY = re.compile(r"\$(\w*)\$(.*?)\$\1\$", re.DOTALL)
_CODE = {"python": "code", "shell": "command"}
SCRIPTS = (".py", ".sql", ".sh", ".bash")
_DIALECTS = ("sqlite", "duckdb", "postgres")
_LONGEST = 200_000


@value
class Wrong:
    """Something forbidden that was tried or done.

    Attributes:
        words: a sentence.
        call: which of the calls of tools did it, from 1; None if only a changed path shows it.
        path: that path.
    """

    words: str
    call: int | None = None
    path: str = ""


def done_wrong(
    check: ForbiddenCheck, trajectory: Trajectory, end_state: Mapping[str, Json], world: WorldOfSuite
) -> Iterator[Wrong]:
    """Yields what of the forbidden was tried or done."""
    written: dict[str, str] = {}
    for number, step in enumerate(trajectory.tool_steps(), 1):
        call = step.calls[0]
        foreign, failed = read_foreign(call), ", which failed" if step.error_class is not None else ""
        if foreign is None:
            path, content, texts = _ours(call)
            dialects = dialects_of(world, call.arguments.get("database")) if call.name == "sql" else _DIALECTS
        else:
            path, content, texts, dialects = foreign.path, foreign.content, foreign.texts, _DIALECTS
        for kind, script in _statements(check, texts, dialects, written):
            told = (
                f"in {script}, which call {number} ({call.name}) names" if script else f"in call {number} ({call.name})"
            )
            yield Wrong(f"{kind} {told}{failed}", number)
        places = dict.fromkeys((*_places(texts, written), *([path] if path else [])))
        yield from (Wrong(f"call {number} writes to {one}", number) for one in places if meets_one_of(one, check.paths))
        if path:
            written[normal_path(path)] = content
    yield from (Wrong(f"{path} was changed", path=path) for path in end_state if _is_one_of(path, check.paths))


def _ours(call: ToolCall) -> tuple[str, str, tuple[PossibleCode, ...]]:
    """Returns the file that a call of a tool of ours writes, with its content, and what it runs."""
    told = {name: str(call.arguments.get(name, "")) for name in ("path", "text", "query", *_CODE.values())}
    if call.name == "write_file":
        return told["path"], told["text"], ()
    if call.name == "sql":
        return "", "", (PossibleCode(told["query"], "sql"),)
    return "", "", (PossibleCode(told[_CODE[call.name]], "code"),) if call.name in _CODE else ()


def _statements(
    check: ForbiddenCheck, texts: Collection[PossibleCode], dialects: tuple[str, ...], written: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yields the forbidden kinds of statements that a call makes, and those in scripts that it names, with these."""
    found = [_kinds_of_text(one, dialects) for one in texts]
    yield from ((kind, "") for kind in check.statements if any(kind in one for one in found))
    for name, script in (named_one for one in _programs(texts) for named_one in named(one, written)):
        kinds = kinds_in(script, name.endswith(".sql"), _DIALECTS)
        yield from ((kind, name) for kind in check.statements if kind in kinds)


def _programs(texts: Collection[PossibleCode]) -> Collection[str]:
    return dict.fromkeys(one.text for one in texts if one.kind != "sql")


def _places(texts: Collection[PossibleCode], written: Mapping[str, str]) -> Iterator[str]:
    """Yields the files that code writes, moves or removes, and those that scripts do which it names."""
    for text in dict.fromkeys(one.text for one in texts if one.kind == "code"):
        yield from written_by(text, _clear_program(text))
        for name, script in named(text, written):
            if not name.endswith(".sql"):
                yield from written_by(script, program_of(script) if name.endswith(".py") else None)


def _clear_program(text: str) -> ast.Module | None:
    """Returns a program of Python that calls something; `echo > a` and `cat > a <<END` could be read as one, too."""
    program = None if without_documents(text)[1] else program_of(text)
    calls = program is not None and any(isinstance(node, ast.Call) for node in ast.walk(program))
    return program if calls else None


def _kinds_of_text(text: PossibleCode, dialects: tuple[str, ...]) -> frozenset[str]:
    """Returns the kinds of statements in what a tool may have run."""
    if text.kind == "any":
        return kinds_in_any(text.text)
    return kinds_in(text.text, text.kind == "sql", dialects)


def writes_to(paths: Collection[str], check: ForbiddenCheck) -> bool:
    """Returns whether one of some paths must not be changed."""
    return any(_is_one_of(one, check.paths) for one in paths)


def named(text: str, written: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yields the scripts, written before, that a program or a command names, or that one of these names."""
    left, texts = {path: content for path, content in written.items() if path.endswith(SCRIPTS)}, [text]
    while texts:
        words = set(re.findall(r"\w+", texts.pop()))
        for path in [one for one in left if one.rpartition("/")[2].partition(".")[0] in words]:
            yield path, left[path]
            texts.append(left.pop(path))


def dialects_of(world: WorldOfSuite, database: Json) -> tuple[str, ...]:
    """Returns the dialects that a database may have, the likeliest first."""
    found = world.databases.get(str(database or next(iter(world.databases), "")))
    if found is not None and found.scripts:
        return ("postgres",)
    is_duckdb = found is not None and str(found.file).endswith((".duckdb", ".ddb"))
    return ("duckdb", "sqlite") if is_duckdb else ("sqlite", "duckdb")


def _is_one_of(path: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


@lru_cache(maxsize=512)
def kinds_in(text: str, is_sql: bool, dialects: tuple[str, ...] = _DIALECTS) -> frozenset[str]:
    """Returns the kinds of statements in a text of SQL, or in the texts of a program or of a command of the shell."""
    if is_sql:
        found = _parsed(text, dialects)
        return frozenset(_begun(text, anywhere=True) if found is None else found)
    return frozenset(kind for one in texts_in(text) for kind in _of_text(one, dialects))


@lru_cache(maxsize=512)
def kinds_in_any(text: str) -> frozenset[str]:
    """Returns the kinds of statements in a text that may be SQL, a program, a command, or for people to read.

    Only what can be parsed is a statement. A place where a program sets something in is told as the name `x`.
    """
    if not _ANY_WORD.search(text):
        return frozenset()
    parts = {_SET_IN.sub("x", one) for one in (text, *text.split(";"), *texts_in(text)) if _ANY_WORD.search(one)}
    return frozenset(kind for one in parts for kind in _written_in(one, _parsed(one, _DIALECTS) or ()))


def _of_text(text: str, dialects: tuple[str, ...]) -> Collection[str]:
    """Returns the kinds of statements in a text that may be SQL, or anything else."""
    found = _parsed(text, dialects)
    return _begun(text, anywhere=False) if found is None else _written_in(text, found)


def _written_in(text: str, kinds: Collection[str]) -> set[str]:
    """Returns the kinds of which a text has the word in capitals, or the first words; others are words of prose."""
    bare = _COMMENT.sub(" ", text)
    begun = {kind for kind, form in _BEGINNINGS.items() if re.search(rf"\b{form}", bare, re.IGNORECASE)}
    words = set(re.findall(r"\b[A-Z]+\b", text))
    if len(text.split()) < 2:  # what is looked for, or an argument
        return {"VACUUM"} & words & set(kinds)
    return {kind for kind in kinds if kind in begun or not words.isdisjoint(_WORDS.get(kind, (kind,)))}


def _parsed(text: str, dialects: tuple[str, ...]) -> set[str] | None:
    """Returns the kinds of statements in SQL; None if it is none in any dialect."""
    from eval_pipeline_plugins.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statements

    last: set[str] | None = None
    for dialect in dialects:
        with suppress(SqlSyntaxError):
            statements = parse_statements(text, dialect, longest=_LONGEST)
            found = {kind for one in statements for node in one.walk() for kind in _kinds_of(node, dialects)}
            if not any(one.key == "command" for one in statements):
                return found
            last = found | (last or set())
    return last


def _kinds_of(node: "exp.Expr", dialects: tuple[str, ...]) -> Collection[str]:
    """Returns the kinds of what a node of a statement does; what is only kept as text is looked into."""
    kind = _NODES.get(node.key, node.key.upper())
    if kind != "COMMAND":
        return (kind,) if kind in STATEMENTS else ()
    verb, rest = node.name.upper(), node.args.get("expression")
    text = str(getattr(rest, "this", rest) or "")
    within: Collection[str] = ()
    if verb == "DO":
        within = {found for _, body in _BODY.findall(text) for found in _begun(body, anywhere=True)}
        within = within or _begun(text, anywhere=True)
    elif verb == "EXPLAIN" and (ran := re.match(r"\s*(?:\([^)]*ANALY[SZ]E[^)]*\)|ANALY[SZ]E\b)(.*)", text, _ANY)):
        within = _of_text(ran[1], dialects)
    elif verb == "PREPARE":
        within = _of_text(re.split(r"\bAS\b", text, maxsplit=1, flags=re.IGNORECASE)[-1], dialects)
    verb = "INSERT" if verb == "REPLACE" else verb
    return {*within, *([verb] if verb in STATEMENTS else ())}


_ANY = re.DOTALL | re.IGNORECASE
_NODES = {"truncatetable": "TRUNCATE", "into": "CREATE"}
"""Kinds of nodes whose names are others."""


def _begun(text: str, *, anywhere: bool) -> set[str]:
    """Returns the kinds of statements by their first words: at the beginning of each, or wherever they are."""
    bare = _TEXT.sub("''", _COMMENT.sub(" ", text))
    parts = [bare] if anywhere else [one.strip() for one in bare.split(";")]
    found = {
        kind
        for kind, form in _BEGINNINGS.items()
        for one in parts
        if (re.search(rf"\b{form}", one, re.IGNORECASE) if anywhere else re.match(form, one, re.IGNORECASE))
    }
    if anywhere:  # it was given as SQL
        found |= {word.upper() for one in bare.split(";") for word in one.split()[:1] if word.upper() in STATEMENTS}
    return found


def texts_in(text: str) -> Iterator[str]:
    """Yields the texts in a program, without its comments; or the words of commands, alone and together."""
    with suppress(RecursionError):
        if (program := program_of(text)) is not None:
            yield from _constants(program)
            return
    text, documents = without_documents(text)
    for one in documents:
        yield one.text
        yield from _of_program(one.text)
    try:
        for words in commands_in(text):
            yield from _of_words(words)
    except ValueError:  # a quote that is not closed
        yield from re.split(r"['\"]", text)


def _of_words(words: Sequence[str]) -> Iterator[str]:
    """Yields the words of a command, the texts in those that are code, and all but the first of each part together."""
    part: list[str] = []
    for word in (*words, ";"):
        if set(word) <= SIGNS:
            yield " ".join(part[1:])
            part = []
            continue
        if part and part[-1].endswith("c") and part[-1].startswith("-"):  # a command within one
            yield from texts_in(word)
        part.append(word)
        yield word
        yield from _of_program(word)


def _of_program(text: str) -> Iterator[str]:
    with suppress(RecursionError):
        if "(" in text and (program := program_of(text)) is not None:
            yield from _constants(program)


def _constants(node: ast.AST) -> Iterator[str]:
    """Yields the texts of a program, each as long as it is written in one expression."""
    if (text := _written(node)) is not None:
        yield text
        return
    for one in ast.iter_child_nodes(node):
        yield from _constants(one)


def _written(node: ast.AST) -> str | None:
    """Returns the text of an expression that is one; values in it are told as the name `x`."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_written(one) or "x" for one in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            texts = _written(left), _written(right)
            return None if texts == (None, None) else "".join("x" if one is None else one for one in texts)
    return None
