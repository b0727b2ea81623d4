"""The parts of a prompt: what there is to work with, guidelines, and the task."""

from collections.abc import Sequence
from typing import Final

from eval_pipeline.core.model import Message
from eval_pipeline.tracks.texts.prompt_parts import EXAMPLES, PromptParts
from eval_pipeline_plugins.tracks.agent.cases.case_file import AgentCase, AgentContext, AgentTurn
from eval_pipeline_plugins.tracks.agent.trajectory import ASK

_RULES: Final = (
    "You work on a task with tools, in a folder with files and databases. Look at what is there before you rely on it; "
    "if a call fails, read why and try otherwise. Change nothing but what the task asks for. When you are done, call "
    "the tool `answer`: with what was asked for and nothing else, with `done` if only something was to be done, or, if "
    "the task cannot be answered with what is there, with a sentence that says so and why."
)
_USER: Final = " What the task leaves open can be asked of the user with the tool `ask_user`."
_ALONE: Final = (
    "You work on a task in the current folder, with its files and databases. Look at what is there before you rely on "
    "it, and change nothing but what the task asks for. Your answer is what was asked for and nothing else, `done` if "
    "only something was to be done, or, if the task cannot be answered with what is there, a sentence that says so and "
    "why."
)
_ASKED: Final = (
    'What the task leaves open can be asked of the user: POST the JSON {"question": …} to the address in the '
    "environment variable EVAL_TOOLS, followed by /ask_user; `result` in what comes back is what the user says."
)
_REPLIES: Final = (
    'The user goes on after your answer: POST each answer as the JSON {"answer": …} to the address in the environment '
    "variable EVAL_TOOLS, followed by /answer; until `ends` is true in what comes back, `result` is the next message."
)
_TEMPLATE = (
    Message("system", "{{ rules }}\n\n{{ world }}\n\n{{ guidelines }}"),
    EXAMPLES,
    Message("user", "{{ question }}"),
)


def prompt_parts(case: AgentCase, turn: AgentTurn, history: Sequence[str], version: str) -> PromptParts:
    """Returns the parts of a task's prompt; the system message is the same for cases with one world and tools.

    Raises:
        KeyError: the version is not in `prompt_versions`.
    """
    context = case.context
    texts = {
        "rules": {"agent-1": _RULES}[version] + (_USER if ASK in context.all_tools() else ""),
        "world": world_text(context),
        "guidelines": context.guidelines,
        "question": turn.question,
    }
    return PromptParts(_TEMPLATE, texts, {EXAMPLES: []}, shared=frozenset({"rules", "world", "guidelines"}))


def task_text(case: AgentCase, turn: AgentTurn) -> str:
    """Returns a task in words for somebody's own program."""
    context = case.context
    ways = [_ASKED if context.facts is not None else "", _REPLIES if context.then else ""]
    return "\n\n".join(filter(None, (_ALONE, *ways, context.world.description, context.guidelines, turn.question)))


def world_text(context: AgentContext) -> str:
    """Returns what a model is told of a world."""
    named = [
        f"- {name}: {one.file or 'PostgreSQL'}{', read-only' if one.read_only else ''}"
        for name, one in context.world.databases.items()
    ]
    databases = "\n".join(["Databases for the tool `sql`:", *named]) if named and "sql" in context.tools else ""
    return "\n".join(filter(None, (context.world.description, databases)))
