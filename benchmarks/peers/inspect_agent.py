"""inspect-ai's agent on the tasks of `benchmarks.agents`, by the interpreter that has it: TASKS WORLD ATTEMPTS LOGS.

Each attempt has a copy of the world in a folder of its own (Inspect's sandbox `local`, which holds nothing back); its
own `python` and `bash` start a process a call. Prints how many attempts it found right.
"""

import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from inspect_ai import Epochs, Task
from inspect_ai import eval as evaluate
from inspect_ai.agent import AgentPrompt, react
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.tool import Tool, ToolChoice, ToolInfo, bash, python, tool
from inspect_ai.util import sandbox
from inspect_ai.util._sandbox.local import LocalSandboxEnvironment

tasks = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
world, attempts, logs = Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
NAMES = {"shell": "bash", "answer": "submit"}
ARGUMENTS = {"sql": "query", "python": "code", "shell": "command", "list_files": "path", "read_file": "path"}


def folder() -> Path:
    """Where the attempt's files lie."""
    return Path(sandbox().as_type(LocalSandboxEnvironment).directory.name)


@tool
def list_files() -> Tool:
    async def execute(path: str) -> str:
        """Lists files.

        Args:
            path: a folder.
        """
        return "\n".join(sorted(os.listdir(folder() / path)))

    return execute


@tool
def read_file() -> Tool:
    async def execute(path: str) -> str:
        """Reads a file.

        Args:
            path: the file.
        """
        return await sandbox().read_file(path)

    return execute


@tool
def write_file() -> Tool:
    async def execute(path: str, text: str) -> str:
        """Writes a file.

        Args:
            path: the file.
            text: what it contains.
        """
        await sandbox().write_file(path, text)
        return "written"

    return execute


@tool
def sql() -> Tool:
    async def execute(query: str) -> str:
        """Runs SQL.

        Args:
            query: the statement.
        """
        with closing(sqlite3.connect(folder() / "shop.sqlite")) as database:
            return "\n".join(" | ".join(map(str, row)) for row in database.execute(query))

    return execute


def next_call(
    messages: list[ChatMessage], tools: list[ToolInfo], choice: ToolChoice, config: GenerateConfig
) -> ModelOutput:
    """The script's call after those that were made."""
    script = scripts[messages[-1].text if len(messages) == 1 else next(m.text for m in messages if m.role == "user")]
    ((name, given),) = script[sum(message.role == "assistant" for message in messages)].items()
    arguments: dict[str, Any] = given if isinstance(given, dict) else {ARGUMENTS.get(name, name): given}
    arguments = {key: str(value) for key, value in arguments.items()}
    output = ModelOutput.for_tool_call("mockllm/model", NAMES.get(name, name), arguments)
    output.usage = ModelUsage()  # else it looks for a tokenizer on the net
    return output


scripts = {one["task"]: one["gold"] for one in tasks}
files = {str(file.relative_to(world)): str(file) for file in world.rglob("*") if file.is_file()}
dataset = MemoryDataset([Sample(id=one["id"], input=one["task"], target="2000", files=files) for one in tasks])
agent = react(
    prompt=AgentPrompt(instructions=None, handoff_prompt=None, assistant_prompt=None, submit_prompt=None),
    tools=[list_files(), read_file(), write_file(), sql(), python(), bash()],
)
(log,) = evaluate(
    Task(
        dataset=dataset,
        solver=agent,
        scorer=match(location="end"),
        sandbox="local",
        epochs=Epochs(attempts // len(tasks)),
    ),
    model=get_model("mockllm/model", custom_outputs=next_call),
    display="none",
    log_dir=logs,
    max_samples=4,
)
if log.error:
    raise SystemExit(log.error.traceback)
print(round(log.results.scores[0].metrics["accuracy"].value * attempts))
