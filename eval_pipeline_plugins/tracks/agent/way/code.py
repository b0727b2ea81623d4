"""What a call of a tool runs, ours or a foreign one: statements of SQL, programs, and their texts."""

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from eval_pipeline.core.model import Json, ToolCall
from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.agent.cases.worlds import WorldOfSuite
from eval_pipeline_plugins.tracks.agent.checking.forbidden import (
    dialects_of,
    named,
    texts_in,
)
from eval_pipeline_plugins.tracks.agent.checking.foreign import CONTENTS, PATHS, is_ours
from eval_pipeline_plugins.tracks.agent.checking.shell import commands_in, without_documents
from eval_pipeline_plugins.tracks.agent.checking.writes import normal_path, program_of
from eval_pipeline_plugins.tracks.agent.trajectory import ActStep

if TYPE_CHECKING:
    from sqlglot import exp

BEGINS = re.compile(
    r"\s*(?:--[^\n]*\n\s*)*\(?\s*(?:select|with|insert|replace|update|delete|create|drop|alter|copy|from|truncate)\s",
    re.IGNORECASE,
)
_MODEL = re.compile(
    r"\{\{\s*(?:ref\(\s*['\"](\w+)['\"]\s*\)|source\(\s*['\"](\w+)['\"]\s*,\s*['\"](\w+)['\"]\s*\))\s*\}\}"
)
_CONFIG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_ANY_TABLE = re.compile(r"(?<=from )x\b", re.IGNORECASE)
_LONGEST, _MOST_TABLES = 20_000, 12
_WRITES_SQL = re.compile(r">\s*['\"]?[\w./-]+\.sql['\"]?\s*$")
_SHELL = re.compile(r"bash|shell|cmd|command|terminal|exec", re.IGNORECASE)
_PYTHON = re.compile(r"python|code|script|source|cell|notebook", re.IGNORECASE)
_LISTS = re.compile(r"list|glob|find|ls", re.IGNORECASE)


@value
class CallCode:
    """What a call runs.

    Attributes:
        statements: of SQL, wherever they are written.
        programs: of Python.
        texts: words of commands, and the texts in programs.
        commands: of the shell, each as its words.
    """

    statements: tuple["exp.Expr", ...] = ()
    programs: tuple[ast.Module, ...] = ()
    texts: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()


def ran_by(call: ToolCall, world: WorldOfSuite, written: Mapping[str, str]) -> CallCode:
    """Returns what a call runs.

    Args:
        call: the call.
        world: the world that it is made in.
        written: scripts that were written before, by path; a command that names one runs it.
    """
    told = {name: str(one)[:_LONGEST] for name, one in call.arguments.items()}
    if call.name == "sql":
        return CallCode(_parsed(told.get("query", ""), dialects_of(world, call.arguments.get("database"))))
    if call.name == "write_file":
        text = told.get("text", "")
        if normal_path(told.get("path", "")).endswith(".sql"):
            return CallCode(of_model(text))
        return CallCode()
    code = told.get("code") if call.name == "python" else told.get("command") if call.name == "shell" else None
    if code is None:
        return CallCode(texts=tuple(told.values()))
    scripts = tuple(content for path, content in named(code, written) if path.endswith(".py"))
    return _of_code(code, call.name == "shell", scripts)


@lru_cache(maxsize=512)
def _of_code(code: str, is_shell: bool, scripts: tuple[str, ...] = ()) -> CallCode:
    texts = tuple(dict.fromkeys(one for text in (code, *scripts) for one in texts_in(text)))
    commands, documents = without_documents(code)
    bodies = [*(one.text for one in documents), *(one for one in texts if "import " in one)]
    found = (program_of(one) for one in ([*bodies, *scripts] if is_shell else [code, *scripts]))
    programs = tuple(one for one in found if one is not None)
    queries = (query for text in texts if BEGINS.match(text) for query in _over_tables(text, texts))
    statements = tuple(one for query in queries for one in _parsed(query, ("duckdb", "sqlite")))
    models = (one.text for one in documents if is_shell and _WRITES_SQL.search(one.command))
    statements += tuple(one for text in models for one in of_model(text))
    return CallCode(statements, programs, texts, tuple(_commands(commands)) if is_shell else ())


def _over_tables(query: str, texts: tuple[str, ...]) -> list[str]:
    """Returns a query, or one for each name in its program where that of the table is a value, told as `x`."""
    if _ANY_TABLE.search(query) is None:
        return [query]
    return [_ANY_TABLE.sub(name, query) for name in texts if name.isidentifier()][:_MOST_TABLES]


def _commands(text: str) -> Iterator[tuple[str, ...]]:
    with suppress(ValueError):  # a quote that is not closed
        yield from (tuple(words) for words in commands_in(text) if words and words != [")"])


def of_model(text: str) -> tuple["exp.Expr", ...]:
    """Returns the statements of a model of SQL."""
    return _parsed(_without_templates(text), ("duckdb", "sqlite"))


def _without_templates(text: str) -> str:
    """Returns the SQL of a model with the names of what it refers to."""
    return _CONFIG.sub(" ", _MODEL.sub(lambda one: one[1] or f"{one[2]}.{one[3]}", text))


@lru_cache(maxsize=1024)
def _parsed(text: str, dialects: tuple[str, ...]) -> tuple["exp.Expr", ...]:
    from eval_pipeline_plugins.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statements

    for dialect in dialects:
        with suppress(SqlSyntaxError):
            return tuple(parse_statements(text, dialect, longest=_LONGEST))
    return ()


def in_our_words(step: ActStep) -> ActStep:
    """Returns a step with its call as one of our tools, if it is clear what a foreign tool did; else the step.

    SQL is known by how it begins; Python and commands of a shell by the names of tool and argument; a file that is read
    or written by the names of arguments.
    """
    call = step.calls[0]
    if is_ours(call):
        return step
    told = _as_ours(call.name, call.arguments)
    return step if told is None else replace(step, calls=(ToolCall(call.id, *told),))


def _as_ours(tool: str, told: Mapping[str, Json]) -> tuple[str, dict[str, Json]] | None:
    texts = {name: text for name, one in told.items() if (text := _text(one))}
    if (sql := next((one for one in texts.values() if BEGINS.match(one) and not _is_python(one)), None)) is not None:
        return "sql", {"query": sql}
    path, content = (next((texts[name] for name in names if name in texts), None) for names in (PATHS, CONTENTS))
    if path is not None and content is not None:
        return "write_file", {"path": path, "text": content}
    if path is not None:
        return ("list_files" if _LISTS.match(tool) else "read_file"), {"path": path}
    for name, text in texts.items():
        if _PYTHON.search(f"{tool} {name}") and _is_python(text):
            return "python", {"code": text}
    for name, text in texts.items():
        if _SHELL.search(f"{tool} {name}"):
            return "shell", {"command": text}
    return None


def _text(told: Json) -> str:
    """Returns a text; of the words of a command, what it is in a shell."""
    if isinstance(told, list) and told and all(isinstance(one, str) for one in told):
        words = [str(one) for one in told]
        is_shell = len(words) == 3 and words[0].endswith("sh") and words[1] in ("-c", "-lc")
        return words[2] if is_shell else shlex.join(words)
    return told if isinstance(told, str) else ""


def _is_python(text: str) -> bool:
    program = program_of(text)
    return program is not None and bool(program.body)
