"""Agents on frameworks and command lines that others have made run in the jail unchanged, where they are installed.

`EVAL_AGENTS` names a virtual environment with pydantic-ai-slim (extras anthropic and openai) and smolagents (extra
openai), with command lines of npm in its `node_modules` (`npm install --prefix FOLDER @anthropic-ai/claude-code
opencode-ai @openai/codex`), and with aider-chat in another environment, its folder `aider`.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline_tests.fakes.agent_server import AgentServer, Call
from eval_pipeline_tests.pipeline.test_own_agents import SOLVED, limit, run, sample
from eval_pipeline_tests.support import Lab

__all__ = ["sample"]

SETTING = "EVAL_AGENTS"
PYDANTIC_AI = """
import asyncio, os, subprocess, sys
from pydantic_ai import Agent
if os.environ["WIRE"] == "anthropic":
    from pydantic_ai.models.anthropic import AnthropicModel as Model
elif os.environ["WIRE"] == "responses":
    from pydantic_ai.models.openai import OpenAIResponsesModel as Model
else:
    from pydantic_ai.models.openai import OpenAIChatModel as Model
given, agent = [], Agent(Model("m"), system_prompt="Work in the current folder.")

@agent.tool_plain
def shell(command: str) -> str:
    ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    return ran.stdout + ran.stderr or "(nothing)"

@agent.tool_plain
def answer(answer: str) -> str:
    given.append(answer)
    return "noted"

async def main():
    task = sys.stdin.read()
    if os.environ["STREAM"]:
        async with agent.run_stream(task) as result:
            await result.get_output()
    else:
        await agent.run(task)
    print(given[-1])

asyncio.run(main())
"""
SMOLAGENTS = """
import os, subprocess, sys
from smolagents import CodeAgent, OpenAIModel, ToolCallingAgent, tool

@tool
def shell(command: str) -> str:
    \"\"\"Runs a command.

    Args:
        command: of sh.
    \"\"\"
    ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    return ran.stdout + ran.stderr or "(nothing)"

kind = CodeAgent if os.environ["KIND"] == "code" else ToolCallingAgent
agent = kind(tools=[shell], model=OpenAIModel("m"), stream_outputs=bool(os.environ["STREAM"]))
print(agent.run(sys.stdin.read()))
"""
CLAUDE = ["{modules}/.bin/claude", "-p", "--dangerously-skip-permissions", "--model", "m"]
CODEX = [
    *("{modules}/.bin/codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
    *("-m", "m", "-c", "model_provider=eval", "-c", "model_providers.eval.name=eval"),
    *("-c", "model_providers.eval.base_url=http://127.0.0.1:4117/v1", "-c", "model_providers.eval.wire_api=responses"),
    *("-c", "web_search=disabled"),  # the API would run it, which is a network
    "-",
]  # fmt: skip
OPENCODE = ["{modules}/.bin/opencode", "run", "-m", "anthropic/m", "{task}"]
ITS_CONFIG = {
    "provider": {
        "anthropic": {
            "options": {"baseURL": "http://127.0.0.1:4117/v1"},
            "models": {"m": {"tool_call": True, "limit": {"context": 100_000, "output": 4_000}}},
        }
    },
    "permission": "allow",
}
ITS_ENV = {
    "OPENCODE_CONFIG_CONTENT": json.dumps(ITS_CONFIG),
    **{f"OPENCODE_DISABLE_{name}": "1" for name in ("MODELS_FETCH", "AUTOUPDATE", "DEFAULT_PLUGINS", "LSP_DOWNLOAD")},
}
AIDER = [
    *("aider", "--model", "openai/m", "--openai-api-base", "http://127.0.0.1:4117/v1", "--edit-format", "whole"),
    *("--yes-always", "--no-git", "--map-tokens", "0", "--no-check-update", "--no-show-model-warnings"),
    *("--analytics-disable", "--auto-test", "--test-cmd", "sh ./work.sh", "--message", "{task}"),
]  # fmt: skip


class Forgiving(AgentServer):
    """Ends a conversation about nothing that it knows, such as one on a title, and hears observations as results."""

    role, heard = "user", "Observation:"
    """What tells that a call was made: such a text, said by whom."""

    def _next(self, items: Sequence[Mapping[str, Any]]) -> list[tuple[str, Call]]:
        said = [item for item in items if item.get("role") == "user"]
        texts = [str(item.get("content")) for item in said]
        known = [script for task, script in self._scripts.items() if any(task in text for text in texts)]
        if not known:
            return []
        observed = sum(item.get("role") == self.role and self.heard in str(item.get("content")) for item in items)
        if not observed:
            return super()._next(items)
        return [(f"call_{observed}", call) for call in known[0][observed : observed + 1]]


class Offered(Forgiving):
    """Calls tools only where some are offered: opencode asks for a title in the words of the task."""

    def _next(self, items: Sequence[Mapping[str, Any]]) -> list[tuple[str, Call]]:
        return super()._next(items) if self.tools else []


class Coding(Forgiving):
    """Answers in code."""

    def _text_of(self, calls: Sequence[tuple[str, Call]]) -> str:
        ((_, (name, arguments)),) = calls
        code = (
            f"final_answer({arguments['answer']!r})" if name == "answer" else f"print(shell({arguments['command']!r}))"
        )
        return f"Thought: look.\n<code>\n{code}\n"


class Writing(Forgiving):
    """Writes the next command into a file, which aider runs as the test of what it wrote, until that succeeds."""

    role, heard = "assistant", "\nexit 1\n"

    def _text_of(self, calls: Sequence[tuple[str, Call]]) -> str:
        if not calls:
            return super()._text_of(calls)
        command = str(calls[0][1][1]["command"])
        return f"work.sh\n```\n{command}\nexit {int('EVAL_ANSWER' not in command)}\n```\n"


def named(answer: str, **by_shell: str) -> dict[str, list[Call]]:
    """The scripts with another name of `answer`, or, with a name of the shell and its argument, by a command."""
    scripts: dict[str, list[Call]] = {}
    for task, calls in SOLVED.items():
        *looks, (_, last) = calls
        if by_shell:
            ((name, field),) = by_shell.items()
            told = [*(one["command"] for _, one in looks), f"printf %s '{last['answer']}' > $EVAL_ANSWER"]
            scripts[task] = [(name, {field: command}) for command in told]
        else:
            scripts[task] = [*looks, (answer, last)]
    return scripts


def described(scripts: Mapping[str, Sequence[Call]]) -> dict[str, list[Call]]:
    """The scripts with what a tool wants to be told beside its command."""
    return {task: [(name, {**told, "description": "work"}) for name, told in calls] for task, calls in scripts.items()}


KINDS: dict[str, tuple[type[AgentServer], dict[str, list[Call]], list[str] | str, dict[str, str]]] = {
    **{
        f"pydantic-ai, {wire}{', streamed' if stream else ''}": (
            AgentServer,
            SOLVED,
            PYDANTIC_AI,
            {"WIRE": wire, "STREAM": stream},
        )
        for wire in ("anthropic", "chat", "responses")
        for stream in ("", "1")
    },
    "smolagents": (Forgiving, named("final_answer"), SMOLAGENTS, {"KIND": "tools", "STREAM": ""}),
    "smolagents, streamed": (Forgiving, named("final_answer"), SMOLAGENTS, {"KIND": "tools", "STREAM": "1"}),
    "smolagents in code": (Coding, SOLVED, SMOLAGENTS, {"KIND": "code", "STREAM": ""}),
    "claude-code": (Forgiving, named("", Bash="command"), CLAUDE, {}),
    "opencode": (Offered, described(named("", bash="command")), OPENCODE, ITS_ENV),
    "aider": (Writing, named("", shell="command"), AIDER, {}),
    "codex": (Forgiving, named("", exec_command="cmd"), CODEX, {}),
}


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_of_others_solves_its_tasks_unchanged(sample: Lab, tmp_path: Path, kind: str) -> None:
    given = os.environ.get(SETTING)
    if not given:
        pytest.skip(f"{SETTING} names no virtual environment with agents of others")
    server_kind, scripts, code, env = KINDS[kind]
    modules = (Path(given) / "node_modules").resolve()
    options: dict[str, Any] = {"env": env, "venv": given, "command": ["python", "agent.py"], "folder": str(tmp_path)}
    if isinstance(code, str):
        (tmp_path / "agent.py").write_text(code)
    else:
        command = [one.replace("{modules}", str(modules)) for one in code]
        of_python = Path(given) / Path(command[0]).name  # an environment of its own, as what it needs suits no other
        program = of_python / "bin" / command[0] if of_python.exists() else Path(command[0])
        if not program.exists():
            pytest.skip(f"{kind} is not in {given}")
        own = {"venv": str(of_python)} if of_python.exists() else {"mounts": [str(modules)]}
        options = {"command": command, "env": env, **own}
    limit(sample, seconds=600)
    with server_kind(scripts) as server:
        upstream = {"anthropic": server.url, "openai": f"{server.url}/v1"}
        price = {"input": 1, "output": 2}
        version = {"name": "others", "provider": "command", "model": "m", "price": price, "concurrency": 1}
        sample.versions({**version, "options": {**options, "upstream": upstream}})
        said = run(sample, "others")
        assert said.code == 0, said.text
    turns = sample.sql("SELECT task_correct, ended, tool_calls, model_calls FROM agent_turns ORDER BY turn_id")
    assert [turn[:2] for turn in turns] == [(True, "answered")] * len(SOLVED), turns
    print(f"{kind}: {sum(turn[3] for turn in turns):g} calls of the model, {sum(turn[2] for turn in turns):g} of tools")
