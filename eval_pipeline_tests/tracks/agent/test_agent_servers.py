"""A suite's own tools: a server written with the package `mcp` serves them, in the jail, to golds and to models."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.tracks.base import CaseError
from eval_pipeline_plugins.tracks.agent.running.blocking import close_worlds
from eval_pipeline_plugins.tracks.agent.running.gold import gold_run
from eval_pipeline_plugins.tracks.agent.track import TRACK
from eval_pipeline_plugins.tracks.agent.trajectory import Trajectory

SERVER = '''
import os
from mcp.server import MCPServer

app = MCPServer("notes")

@app.tool()
def add_note(text: str, times: int = 1) -> str:
    """Adds a note."""
    with open("/world/notes.txt", "a") as file:
        file.write(f"{os.environ['MARK']} {text}\\n" * times)
    return f"{times} added"

@app.tool()
def notes() -> dict[str, int]:
    """Counts the notes."""
    return {"count": len(open("/world/notes.txt").readlines())}

app.run()
'''
NOTES = {"command": "python", "args": ["notes.py"], "env": {"MARK": "-"}}
CASE: dict[str, Any] = {
    "id": "add",
    "world": "desk",
    "task": "Note twice that milk is needed, and say how many notes there are then.",
    "gold": [{"add_note": {"text": "milk", "times": 2}}, {"notes": None}, {"answer": 3}],
}


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVAL_HOME", str(tmp_path / "home"))
    folder = tmp_path / "desk"
    (folder / "worlds" / "desk" / "files").mkdir(parents=True)
    (folder / "worlds" / "desk" / "files" / "notes.txt").write_text("- bread\n")
    (folder / "worlds" / "desk" / "world.yaml").write_text("description: A desk.\n")
    (folder / "tools").mkdir()
    (folder / "tools" / "notes.py").write_text(SERVER)
    return folder


def test_tools_of_a_real_server_are_offered_and_called(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"mcp": {"notes": NOTES}}
    shared = TRACK.read_shared(suite, options)
    case = TRACK.read_case(CASE, "desk", "cases.yaml", 1, shared)
    offered = {tool.name: tool for tool in TRACK.tools(case)}
    assert list(offered) == [
        *("sql", "python", "shell", "list_files", "read_file", "write_file"),
        *("add_note", "notes", "answer"),
    ]
    schema = offered["add_note"].parameters
    assert (offered["add_note"].description, schema["required"]) == ("Adds a note.", ["text"])
    assert schema["properties"]["times"]["type"] == "integer"

    run = gold_run(case)
    assert isinstance(run, Trajectory) and TRACK.check_gold(case) == []
    assert run.steps[0].text == "2 added" and json.loads(run.steps[1].text) == {"count": 3}
    assert set(run.end_state) == {"notes.txt"}
    close_worlds()

    calls: list[tuple[str, dict[str, Any]]] = [
        ("add_note", {"words": "milk"}),
        ("add_note", {"text": "milk", "times": "many"}),
        ("shell", {"command": "cat notes.txt; ls /tools"}),
    ]

    async def wrong_ones() -> list[str]:
        async with TRACK.executor() as executor, TRACK.world(executor, case, case.turns[0]) as world:
            return [(await world.call(*call, 60.0)).text for call in calls]

    unnamed, many, shown = asyncio.run(wrong_ones())
    assert "needs the argument 'text'" in unnamed and "must be a number" in many and shown == "- bread\n"

    few = TRACK.read_case({**CASE, "tools": ["add_note", "notes"]}, "desk", "cases.yaml", 1, shared)
    assert [tool.name for tool in TRACK.tools(few)] == ["add_note", "notes", "answer"]
    wrong = {**CASE, "gold": [{"add_note": {}}, {"answer": 3}]}
    for raw, field in ((wrong, "gold"), ({**CASE, "tools": ["add_notes"]}, "tools")):
        with pytest.raises(CaseError) as refused:
            TRACK.read_case(raw, "desk", "cases.yaml", 1, shared)
        assert refused.value.problems[0][0][0] == field

    before = TRACK.surroundings(case), TRACK.shared_rows(shared)
    (kept,) = (suite.parent / "home" / "worlds").glob("tools-*.json")
    listed = json.loads(kept.read_text())
    monkeypatch.setattr("eval_pipeline_plugins.tracks.agent.cases.servers._listed", lambda *_: listed)
    (suite / "tools" / "notes.py").write_text(SERVER.replace("added", "noted"))
    changed_suite = TRACK.read_shared(suite, options)
    now = TRACK.read_case(CASE, "desk", "cases.yaml", 1, changed_suite)
    assert TRACK.surroundings(now) != before[0] and TRACK.shared_rows(changed_suite) != before[1]


OBJECT = {"type": "object"}
WRONG: dict[str, Any] = {
    "'notes' has ended": "the server 'notes' has ended",
    "no tools": [],
    "'sql'": [{"name": "sql", "inputSchema": OBJECT}],
    "'ask_user'": [{"name": "ask_user", "inputSchema": OBJECT}],
    "'one'": [{"name": "one", "inputSchema": OBJECT}, {"name": "one", "inputSchema": OBJECT}],
    "'of two words'": [{"name": "of two words", "inputSchema": OBJECT}],
    "'inputSchema'": [{"name": "one"}],
}


def test_servers_are_asked_once_and_wrong_answers_are_told_with_their_place(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"mcp": {"notes": NOTES}, "tools": ["one"]}
    asked = list[Any](WRONG.values())
    asked.append([{"name": "one", "inputSchema": OBJECT}])
    monkeypatch.setattr("eval_pipeline_plugins.tracks.agent.cases.servers._listed", lambda *_: {"notes": asked.pop(0)})
    for said in WRONG:
        with pytest.raises(InputError) as refused:
            TRACK.read_shared(suite, options)
        (problem,) = refused.value.problems
        assert said in problem.message and "options.mcp.notes" in str(problem)
    first = TRACK.read_shared(suite, options)
    assert not asked and TRACK.read_shared(suite, options)[2] == first[2]
    with pytest.raises(InputError, match="'two'"):
        TRACK.read_shared(suite, {**options, "tools": ["two"]})
