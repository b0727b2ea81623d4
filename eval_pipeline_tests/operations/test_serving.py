"""A task's tools are served by MCP: the package's own client works on it, and the attempt is judged and kept."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import UsageError
from eval_pipeline.operations.suite_work.serving import ServedTask, served_case
from eval_pipeline.suites.headers import read_header
from eval_pipeline.tracks.abilities import executor_of
from eval_pipeline.tracks.capabilities import Acts
from eval_pipeline_plugins.tracks.agent.running.blocking import close_worlds

CASE = """
- id: left
  world: shop
  task: Write the number of orders to left.csv (header n).
  limits: {steps: 4}
  gold:
    - write_file: {path: left.csv, text: "n\\n3\\n"}
    - answer: done
"""
WRITE = ("write_file", {"path": "left.csv", "text": "n\n3\n"})
DONE = ("answer", {"answer": "done"})


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVAL_HOME", str(tmp_path / "home"))
    folder = tmp_path / "data" / "suites" / "books"
    (folder / "worlds" / "shop" / "files").mkdir(parents=True)
    (folder / "worlds" / "shop" / "files" / "orders.csv").write_text("id\n1\n2\n3\n")
    (folder / "worlds" / "shop" / "world.yaml").write_text("description: A small shop.\n")
    (folder / "suite.yaml").write_text('name: books\nversion: "1"\ntrack: agent\ncases: cases.yaml\n')
    (folder / "cases.yaml").write_text(CASE)
    monkeypatch.setenv("EVAL_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_a_client_of_mcp_works_on_a_task_over_stdio(data: Path, tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    from mcp import Client, StdioServerParameters

    kept = tmp_path / "attempts.jsonl"
    environment = {"EVAL_HOME": str(tmp_path / "home"), "EVAL_DATA": str(data)}
    arguments = ["suite", "serve", "books", "left", "--output", str(kept)]
    command = StdioServerParameters(
        command=str(Path(sys.executable).with_name("eval-pipeline")), args=arguments, env=environment
    )

    async def work() -> tuple[Any, ...]:
        async with Client(command) as client:
            tools = (await client.list_tools()).tools
            told = [await client.call_tool(*call) for call in (("read_file", {"path": "no"}), WRITE, DONE, WRITE)]
            return client.instructions, tools, told

    instructions, tools, told = asyncio.run(work())
    assert "A small shop." in instructions and "Write the number of orders" in instructions
    assert [tool.name for tool in tools][-2:] == ["write_file", "answer"]
    assert [one.is_error for one in told] == [True, False, False, True]
    assert "No such file" in told[0].content[0].text and "has ended" in told[3].content[0].text
    (row,) = map(json.loads, kept.read_text().splitlines())
    assert (row["case_id"], row["turn_index"]) == ("left", 0)
    assert [step["name"] for step in row["response"]["steps"]] == ["read_file", "write_file", "answer"]
    assert set(row["response"]["end_state"]) == {"left.csv"}


def served(data: Path, *calls: tuple[str, dict[str, Any]]) -> ServedTask:
    """The task after these calls, and nobody there any more."""
    track, case = served_case(read_header(data / "suites" / "books"), "left")
    assert isinstance(track, Acts)
    opened = track.world

    async def work() -> ServedTask:
        async with executor_of(track) as executor, opened(executor, case, case.turns[0]) as world:
            task = ServedTask(track, case, executor, world, told.append)
            for call in calls:
                await task.call(*call)
            await task.leave()
            return task

    told = list[ServedTask]()
    task = asyncio.run(work())
    assert told == [task]  # once
    return task


def test_what_is_done_is_judged_by_the_checks(data: Path) -> None:
    pytest.importorskip("mcp")
    look = ("list_files", dict[str, Any]())
    told = {
        "books/left#0: right, after 2 calls": served(data, WRITE, DONE),
        "books/left#0: wrong, after 1 call of tools": served(data, DONE),
        "books/left#0: wrong (it had not answered after 4 calls": served(data, *[look] * 5, DONE),
        "books/left#0: wrong (it ended without": served(data),
    }
    for words, task in told.items():
        assert task.verdict.startswith(words)
    assert [task.row["response"]["ended"] for task in told.values()] == ["answered", "answered", "steps", "gave_up"]
    close_worlds()
    with pytest.raises(UsageError, match="left"):
        served_case(read_header(data / "suites" / "books"), "nothing")
