"""Calls of tools that are not ours (of somebody's own agent, or of a server of tools) in the words of ours."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace

from eval_pipeline.core.model import Json, ToolCall
from eval_pipeline.tracks.agent.checking.forbidden import program_of
from eval_pipeline.tracks.agent.checking.foreign import CONTENTS, PATHS, is_ours
from eval_pipeline.tracks.agent.trajectory import ActStep
from eval_pipeline.tracks.agent.way.code import BEGINS

_SHELL = re.compile(r"bash|shell|cmd|command|terminal|exec", re.IGNORECASE)
_PYTHON = re.compile(r"python|code|script|source|cell|notebook", re.IGNORECASE)
_LISTS = re.compile(r"list|glob|find|ls", re.IGNORECASE)


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
    if (sql := next((one for one in texts.values() if BEGINS.match(one)), None)) is not None:
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
