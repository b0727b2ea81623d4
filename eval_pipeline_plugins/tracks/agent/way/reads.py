"""Which tables and files of the world a call reads and writes, and what it asks the user."""

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.agent.cases.case_file import AgentContext
from eval_pipeline_plugins.tracks.agent.cases.worlds import WorldOfSuite
from eval_pipeline_plugins.tracks.agent.checking.writes import normal_path
from eval_pipeline_plugins.tracks.agent.trajectory import ASK, ActStep
from eval_pipeline_plugins.tracks.agent.way.code import CallCode, of_model

USER = "what the user says: "
_SCHEMA = re.compile(r"^(?:sqlite_master|sqlite_schema|pragma_.*|columns|tables|information_schema.*|duckdb_.*|pg_.*)$")
_ONLY_LIST = frozenset(
    {"ls", "find", "stat", "file", "du", "tree", "rm", "mkdir", "touch", "echo", "printf", "cd", "chmod"}
)
_WRITING = frozenset({"to_csv", "to_parquet", "to_excel", "to_json", "write_text", "write_bytes", "to_sql"})
_SEARCHED = frozenset({"rglob", "glob", "iterdir", "walk"})


@value
class Touched:
    """What a call reads and writes: tables by name, files by path, `USER` and what the user says."""

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()


def touched_by(step: ActStep, ran: CallCode, context: AgentContext) -> Touched:
    """Returns what a call reads and writes; a failed one reads nothing."""
    call, listing = step.calls[0], context.world.listing()
    if call.name == ASK:
        says = [fact.say for fact in context.facts or () if fact.say in step.text]
        return Touched(frozenset(f"{USER}{one}" for one in says))
    databases = {one.place(name): name for name, one in context.world.databases.items()}
    reads, writes = set[str](), set[str]()
    for statement in ran.statements:
        mine, theirs = _of_statement(statement)
        reads |= mine
        writes |= theirs
    if call.name == "write_file":
        writes.add(normal_path(str(call.arguments.get("path", ""))))
    elif call.name == "read_file":
        reads |= _files((str(call.arguments.get("path", "")),), listing)
    elif call.name == "sql":
        known = list(context.world.databases)
        reads |= {str(call.arguments.get("database") or (known[0] if known else ""))} if ran.statements else set()
    elif call.name == "shell":
        for command in ran.commands:
            mine, theirs = _of_command(command, listing)
            reads |= mine
            writes |= theirs
    for program in ran.programs:
        mine, theirs = _of_program(program, ran.texts, listing)
        reads |= mine
        writes |= theirs
    reads |= {one for name in reads for one in _behind(name, context.world)} if ran.statements else set()
    shown = frozenset(databases.get(path, path) for path in reads)
    return Touched(frozenset() if step.error_class is not None else shown, frozenset(writes))


def _of_statement(statement: object) -> tuple[set[str], set[str]]:
    from sqlglot import exp

    from eval_pipeline_plugins.sql_equivalence.syntax.tables_in import base_tables

    assert isinstance(statement, exp.Expr)
    names = {one.name for one in base_tables(statement)}
    read = {str(one.this) for one in statement.find_all(exp.Literal) if one.is_string and "." in str(one.this)}
    target = statement.find(exp.Insert, exp.Update, exp.Delete, exp.Create, exp.Drop, exp.Alter, exp.TruncateTable)
    if target is None:
        return {one for one in names if not _SCHEMA.match(one)} | _paths(read), set()
    written = target.this.find(exp.Table) if isinstance(target.this, exp.Expr) else None
    own = {written.name.lower()} if written is not None else set()
    others = {one.name.lower() for one in statement.find_all(exp.Table) if one is not written}
    is_read = isinstance(target, exp.Update | exp.Delete)
    kept = (names & others) | (own if is_read else set())
    return {one for one in kept if not _SCHEMA.match(one)} | _paths(read), own


def _behind(name: str, world: WorldOfSuite, seen: frozenset[str] = frozenset()) -> set[str]:
    """Returns the tables that a model of this name reads, and those that these read."""
    path = next((one for one in world.listing() if one.rpartition("/")[2] == f"{name}.sql"), None)
    if path is None or name in seen:
        return set()
    text = (world.folder() / path).read_text("utf-8", "replace")
    read = {one for statement in of_model(text) for one in _of_statement(statement)[0]}
    return read | {one for each in read for one in _behind(each, world, seen | {name})}


def _paths(texts: set[str]) -> set[str]:
    return {normal_path(one) for one in texts if re.fullmatch(r"[\w./*-]+\.[A-Za-z]\w{0,7}", one)}


def _files(words: tuple[str, ...], listing: frozenset[str], *, deep: bool = False) -> set[str]:
    """Returns the files that words name, by patterns too; with `deep` also those below folders."""
    found = set[str]()
    for word in words:
        path = normal_path(word)
        if deep and (word in (".", "./", "*") or any(one.startswith(f"{path}/") for one in listing)):
            found |= {one for one in listing if not path or path == "*" or one.startswith(f"{path}/")}
        elif path in listing:
            found.add(path)
        elif any(sign in path for sign in "*?["):
            found |= {one for one in listing if fnmatchcase(one, path) and one.count("/") == path.count("/")}
        elif "." in path:  # after `cd`
            below = [one for one in listing if one.endswith(f"/{path}")]
            found |= set(below) if len(below) == 1 else set()
    return found


def _of_command(words: tuple[str, ...], listing: frozenset[str]) -> tuple[set[str], set[str]]:
    outs = {normal_path(words[at + 1]) for at, word in enumerate(words[:-1]) if word in (">", ">>")}
    kept = tuple(word for at, word in enumerate(words) if at == 0 or words[at - 1] not in (">", ">>"))
    if not kept or kept[0].rpartition("/")[2] in _ONLY_LIST:
        return set(), outs
    program, rest = kept[0].rpartition("/")[2], [one for one in kept[1:] if not one.startswith("-")]
    is_deep = program in ("grep", "rg") and any(one.startswith("-") and "r" in one.lower() for one in kept[1:])
    files = _files(tuple(rest), listing, deep=is_deep)
    if is_deep:
        shapes = [one.partition("=")[2].strip("'\"") for one in kept if one.startswith("--include=")]
        files = {one for one in files if not shapes or any(fnmatchcase(one, f"*{shape}") for shape in shapes)}
    if program in ("sed", "perl") and any(one.startswith("-i") for one in kept):
        outs |= files
    if program in ("cp", "mv", "tee") and rest:
        outs.add(normal_path(rest[-1]))
    return files, outs


def _of_program(program: ast.Module, texts: tuple[str, ...], listing: frozenset[str]) -> tuple[set[str], set[str]]:
    calls = [node for node in ast.walk(program) if isinstance(node, ast.Call)]
    names = {name for call in calls if (name := _called(call))}
    words = tuple(_pattern(one) for one in texts if len(one) < 200 and "\n" not in one)
    deep = bool(names & _SEARCHED)
    shapes = [one for one in words if "*" in one]
    found = {one for one in _files(words, listing, deep=deep) if not deep or not shapes or _fits(one, shapes, words)}
    found |= {_of_uri(one) for one in words if _of_uri(one) in listing}
    return found, set(_written(calls))


def _fits(path: str, shapes: list[str], words: tuple[str, ...]) -> bool:
    return path in words or any(fnmatchcase(path.rpartition("/")[2], one.rpartition("/")[2]) for one in shapes)


def _pattern(text: str) -> str:
    """Returns a text of a program as a pattern of paths: values within it are told as `x`."""
    return re.sub(r"(?<=/)x(?=\.\w+$)", "*", text)


def _of_uri(text: str) -> str:
    return normal_path(text.removeprefix("file:").partition("?")[0])


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _written(calls: list[ast.Call]) -> Iterator[str]:
    for call in calls:
        name, first = _called(call), call.args[0] if call.args else None
        text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None
        mode = (
            call.args[1]
            if len(call.args) > 1
            else next((one.value for one in call.keywords if one.arg == "mode"), None)
        )
        opens = name == "open" and isinstance(mode, ast.Constant) and str(mode.value)[:1] in "wax"
        if text is not None and (opens or name in _WRITING):
            yield normal_path(text)
        if name in ("write_text", "write_bytes") and isinstance(call.func, ast.Attribute):
            inner = call.func.value
            if isinstance(inner, ast.Call) and inner.args and isinstance(inner.args[0], ast.Constant):
                yield normal_path(str(inner.args[0].value))
