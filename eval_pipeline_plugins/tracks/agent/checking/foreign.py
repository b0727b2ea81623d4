"""What calls of tools that are not ours may have done: those of somebody's own agent, or of a server of tools.

Nobody knows what such a tool does with a text. It is read as what the names of the tool and the argument say; where
they say nothing, as SQL, as Python and as commands of a shell, of which only what is a statement counts.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping

from eval_pipeline.core.model import Json, ToolCall
from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.agent.trajectory import MOST, ActStep

_OURS = {
    "sql": "query",
    "python": "code",
    "shell": "command",
    "write_file": "text",
    "read_file": "path",
    "list_files": None,
    "ask_user": None,
    "answer": None,
}
"""Tool → an argument without which a call is one of another tool with the same name."""
_ANSWERS = re.compile(r"answer|final|finish|submit|think|todo|task", re.IGNORECASE)
PATHS = ("path", "file_path", "filepath", "file_name", "filename", "file", "target_file")
CONTENTS = ("content", "contents", "text", "file_text", "file_content", "new_string", "new_str", "insert_text", "data")
"""Arguments that name a file, and those with what is written there."""
_SQL = re.compile(r"sql|psql|duckdb", re.IGNORECASE)
_CODE = re.compile(r"code|python|bash|shell|command|cmd|terminal|script|exec|run", re.IGNORECASE)

_LISTS = re.compile(r"glob|grep|^ls$|list_?(?:files|dir)", re.IGNORECASE)
_ROWS = ("rows", "data", "results", "records", "items")
_COUNTS = ("row_count", "rowCount", "rowcount", "num_rows", "total_rows", "n_rows")
_COUNT = r"(\d[\d,]{0,19})"
_TOLD = re.compile(
    rf"\({_COUNT} rows?\)|\b{_COUNT} rows? (?:in set|returned|selected|fetched)\b"
    rf"|\breturned {_COUNT} rows?\b|\[{_COUNT} rows x \d+ columns\]"
)
"""How psql, MySQL, servers of tools and pandas say how many rows there are."""
_RULE = frozenset("|:- \t")
"""What the line below the header of a table in Markdown consists of."""


@value
class PossibleCode:
    """A text that a tool may have run.

    Attributes:
        text: as it was given.
        kind: `sql`, `code` of Python or of a shell, or `any`, if nothing says which of them it is, if any.
    """

    text: str
    kind: str


@value
class ForeignCall:
    """What is known of a call of a tool that is not ours.

    Attributes:
        texts: what it may have run.
        path: the file that it writes, if it looks like one that writes files.
        content: what it writes there.
    """

    texts: tuple[PossibleCode, ...] = ()
    path: str = ""
    content: str = ""


def is_ours(call: ToolCall) -> bool:
    """Returns whether the tool is one of ours, and not another one of the same name."""
    needed = _OURS.get(call.name)
    return call.name in _OURS and (needed is None or isinstance(call.arguments.get(needed), str))


def read_foreign(call: ToolCall) -> ForeignCall | None:
    """Reads a call; None if the tool is one of ours, whose arguments are known."""
    if is_ours(call):
        return None
    path, content = (_first(call.arguments, names) for names in (PATHS, CONTENTS))
    if path and content:
        return ForeignCall((), path, content)
    if _ANSWERS.search(call.name):
        return ForeignCall()
    found = ((name, text) for name, told in call.arguments.items() for text in _texts(told))
    return ForeignCall(tuple(PossibleCode(text, kind) for name, text in found for kind in _kinds(call.name, name)))


def _kinds(tool: str, argument: str) -> tuple[str, ...]:
    if _SQL.search(argument) or (_SQL.search(tool) and not _CODE.search(argument)):
        return ("sql",)
    return ("code", "any") if _CODE.search(argument) or _CODE.search(tool) else ("any",)


def _first(arguments: Mapping[str, Json], names: tuple[str, ...]) -> str:
    return next((found for name in names if isinstance(found := arguments.get(name), str) and found), "")


def _texts(told: Json) -> Iterator[str]:
    """Yields the texts in an argument; a list of words may be a command with its arguments."""
    if isinstance(told, str):
        yield told
    elif isinstance(told, Mapping):
        for part in told.values():
            yield from _texts(part)
    elif isinstance(told, list):
        words = [word for word in told if isinstance(word, str)]
        if words and len(words) == len(told):
            yield shlex.join(words)
        for part in told:
            yield from _texts(part)


def rows_of(step: ActStep) -> int | None:
    """Returns the rows that a call of a tool gave; None where it gave no table, or one that is not ours does not tell.

    See `may_give_rows` for which of both it is.
    """
    is_told = step.rows is not None or step.error_class is not None or not may_give_rows(step.calls[0])
    return step.rows if is_told else _rows_told(step.text)


def may_give_rows(call: ToolCall) -> bool:
    """Returns whether a tool that is not ours may have given rows: one that runs SQL, or of which nothing is known."""
    names = (_ANSWERS, _LISTS)
    if is_ours(call) or any(one.search(call.name) for one in names) or any(name in call.arguments for name in PATHS):
        return False
    kinds = {kind for name in call.arguments for kind in _kinds(call.name, name)}
    return "code" not in kinds or "sql" in kinds


def runs_code(call: ToolCall) -> bool:
    """Returns whether a tool runs code of a language that prints what it likes, so that nobody counts the rows."""
    if is_ours(call):
        return call.name in ("python", "shell")
    if _ANSWERS.search(call.name) or _LISTS.search(call.name):
        return False
    return any("code" in _kinds(call.name, name) for name in call.arguments)


def _rows_told(text: str) -> int | None:
    try:
        count = _rows_in(json.loads(text))
    except (ValueError, RecursionError):
        count = _rows_printed(text)
    return count if count is not None and 0 <= count <= MOST else None


def _rows_printed(text: str) -> int | None:
    told = [next(filter(None, found)) for found in _TOLD.findall(text)]
    if told:
        return int(told[-1].replace(",", ""))
    lines = [line for line in text.splitlines() if line.strip()]
    ruled = next((at for at, line in enumerate(lines) if "|" in line and "--" in line and set(line) <= _RULE), None)
    return None if ruled is None else sum("|" in line for line in lines[ruled + 1 :])


def _rows_in(read: Json) -> int | None:
    if isinstance(read, Mapping):
        count = next((found for name in _COUNTS if type(found := read.get(name)) is int), None)
        rows = next((found for name in _ROWS if isinstance(found := read.get(name), list)), None)
        return count if count is not None else None if rows is None else len(rows)
    return len(read) if isinstance(read, list) else None
