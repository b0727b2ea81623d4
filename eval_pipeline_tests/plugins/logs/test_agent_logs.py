"""Attempts of agents in the forms of other tools: what is exported is read to the same; foreign logs tell less."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_pipeline.core.errors import InputError
from eval_pipeline.operations.recorded import logs as reading
from eval_pipeline.operations.recorded.logs import recognised
from eval_pipeline_plugins.logs.atif import read_atif
from eval_pipeline_plugins.tracks.agent.running.blocking import close_worlds
from eval_pipeline_plugins.tracks.agent.trajectory import parse_trajectory
from eval_pipeline_plugins.trajectories import CallOfModel, attempt, exchanges
from eval_pipeline_tests.operations.imports import imported
from eval_pipeline_tests.support import Lab

GOLDEN = Path(__file__).parents[2] / "golden" / "atif.yaml"
SQL = {"name": "sql", "arguments": {"query": "SELECT 1"}}
ANSWER = {"name": "answer", "arguments": {"answer": "2"}}


def model(text: str, *calls: Any, **told: Any) -> dict[str, Any]:
    return {"kind": "model", "text": text, "calls": list(calls), "input_tokens": 10, "output_tokens": 2, **told}


def tool(call: Any, result: str, **told: Any) -> dict[str, Any]:
    return {"kind": "tool", **call, "result": result, **told}


RIGHT = [
    model("I look.", SQL, SQL, usd=0.5, latency_ms=20.0),
    tool(SQL, "no such table", error_class="column_error", bytes=13),
    tool(SQL, "a\n1", rows=1, bytes=3, cut=True, seconds=0.25),
    model("", ANSWER, usd=0.25, from_journal=True),
    tool(ANSWER, "", bytes=0),
]
ATTEMPTS: dict[str, dict[str, Any]] = {
    "right": {"steps": RIGHT, "answer": "2", "ended": "answered", "why": "", "end_state": {}},
    # it says the answer, but does not give it: what it said last is no answer of ours
    "silent": {"steps": [model("It is 2.")], "answer": None, "ended": "gave_up", "why": "no answer", "end_state": {}},
    # the second call was not made any more, and no model called the first
    "served": {
        "steps": [tool(SQL, "a\n1"), model("", SQL, ANSWER), tool(SQL, "a\n1")],
        "answer": None,
        "ended": "steps",
        "why": "it had not answered",
        "end_state": {"left.csv": {"size": 2, "sha256": "", "body": ""}},
    },
    "untold": {"steps": RIGHT, "answer": "2", "ended": "answered", "why": "", "end_state": None},
}


def told(lab: Lab, version: str) -> list[Any]:
    """All that is on record of what was done, and what it is worth."""
    steps = lab.sql(
        f"SELECT * EXCLUDE (model_version) FROM steps WHERE model_version = '{version}' ORDER BY turn_id, step"
    )
    turns = (
        "SELECT turn_id, correct, answer_correct, ended, agent_answer, failure_mode, input_tokens, output_tokens, usd"
    )
    return [*steps, *lab.sql(f"{turns} FROM agent_turns WHERE model_version = '{version}' ORDER BY 1")]


@pytest.fixture
def work(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A suite of tasks in a world that has one file; its logs are read in this process."""
    monkeypatch.setattr(reading, "at_arms_length", lambda work, arguments, below: work(*arguments))
    cases = [
        {"id": name, "world": "empty", "task": f"What is 1 + 1, {name}?", "gold": [{"answer": 2}]} for name in ATTEMPTS
    ]
    folder = lab.suite("small", cases, track="agent") / "worlds" / "empty"
    (folder / "files").mkdir(parents=True)
    (folder / "files" / "left.csv").write_text("n\n")
    (folder / "world.yaml").write_text(yaml.safe_dump({"description": "A file."}))
    yield lab
    close_worlds()


@pytest.mark.parametrize("form", ["atif", "inspect"])
def test_what_is_exported_is_read_again_to_the_same_steps_answers_and_figures(
    work: Lab, tmp_path: Path, form: str
) -> None:
    from eval_pipeline.sandbox.world.changes import ChangedFile

    given = json.loads(json.dumps(ATTEMPTS))
    given["served"]["end_state"] = {"left.csv": ChangedFile("file", b"n\n2\n").as_json()}
    rows = [{"case_id": name, "turn_index": 0, "trajectory": one, "input_tokens": 20} for name, one in given.items()]
    said = imported(work, [{**row, "output_tokens": 4, "usd": 0.75} for row in rows], "--model", "puppet/m")
    assert "4 of 4 readable" in said
    assert "NULL for 1 answer, since its end state is not on record, which is checked (state): task_correct" in said
    work.evaluate(version="old", publish=True)
    assert dict(work.sql("SELECT case_id, correct FROM turn_results")) == {
        "right": True, "silent": False, "served": False, "untold": None,
    }  # fmt: skip
    answers = "SELECT answer_correct FROM agent_turns WHERE case_id = 'untold'"
    assert work.one(answers) is True
    out = tmp_path / ("out" if form == "atif" else "log.eval")
    exported = work.cli("export", form, "--suite", "small", "--model-version", "old", "-o", str(out))
    assert exported.code == 0 and "4 " in exported.text, exported.text
    assert recognised(out) == form
    said = imported(work, out, form=form, name="again")
    assert "4 of 4 readable" in said
    work.evaluate(version="again", publish=True)
    assert told(work, "again") == told(work, "old")
    if form == "inspect":
        assert events_in(out) == EVENTS


EVENTS = {
    "right": [("model", 1), ("tool", "no such table"), ("tool", "a\n1"), ("model", 4), ("tool", "")],
    "silent": [("model", 1)],
    "served": [("tool", "a\n1"), ("model", 3), ("tool", "a\n1")],
}
"""Calls of the model, each with how many messages it was given, and of tools, each with its result."""
EVENTS["untold"] = EVENTS["right"]


def events_in(log: Path) -> dict[str, Any]:
    from inspect_ai.event import ModelEvent, ToolEvent
    from inspect_ai.log import read_eval_log

    found = dict[str, Any]()
    for sample in read_eval_log(str(log)).samples or []:
        said = found[sample.metadata["case_id"]] = []
        for event in sample.events:
            assert isinstance(event, ModelEvent | ToolEvent)
            said.append(("model", len(event.input)) if isinstance(event, ModelEvent) else ("tool", event.result))
    return found


def documents() -> list[Any]:
    return yaml.safe_load(GOLDEN.read_text())["documents"]


@pytest.mark.parametrize("case", documents(), ids=lambda case: case["name"])
def test_a_trajectory_of_atif_is_read_as_worked_out_by_hand(tmp_path: Path, case: Any) -> None:
    for name, content in case["files"].items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(content))
    entries = list(read_atif(tmp_path / case.get("read", ".")))
    found = [{**entry.given["trajectory"], **{n: entry.given.get(n) for n in case["given"]}} for entry in entries]
    assert found == [{**case["attempt"], **case["given"]}]
    assert [entry.found["id"] for entry in entries] == [case["id"]]
    assert parse_trajectory(json.dumps(entries[0].given["trajectory"])).end_state is None


BROKEN = {
    "schema_version": "ATIF-v1.7",
    "agent": {"name": "a", "version": "1"},
    "steps": [{"source": "user", "message": ""}],
}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"schema_version": "v2"}, "schema_version: "),
        ({"agent": {"name": "a"}}, "agent.version: "),
        ({"steps": []}, "steps: "),
        ({"steps": [{"source": "robot", "message": ""}]}, "steps.0.source: "),
        (
            {"steps": [{"source": "agent", "tool_calls": [{"function_name": "x"}]}]},
            "steps.0.tool_calls.0.tool_call_id: ",
        ),
        ({"steps": [{"source": "agent", "observation": [7]}]}, "steps.0.observation: "),
        (None, "is not JSON"),
    ],
)
def test_a_damaged_trajectory_of_atif_is_one_sentence(tmp_path: Path, changes: Any, why: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps({**BROKEN, **changes}) if changes is not None else json.dumps(BROKEN)[:-9])
    with pytest.raises(InputError) as raised:
        list(read_atif(file))
    (problem,) = raised.value.problems
    assert (problem.file, why in str(problem)) == (str(file), True), str(problem)


def test_our_own_fields_in_a_foreign_log_are_checked_when_it_is_read() -> None:
    hostile = attempt([model("x")], {"ended": "answered", "end_state": {"../x": {"size": 1}}})
    with pytest.raises(Exception, match="'end_state'"):
        parse_trajectory(json.dumps(hostile))
    assert attempt([], {"ended": "won"})["ended"] == "gave_up"
    assert attempt([], None, ("tokens", "why"))["ended"] == "tokens"


def test_calls_are_told_with_what_they_led_to() -> None:
    found = list(exchanges(parse_trajectory(json.dumps(ATTEMPTS["served"] | {"end_state": {}}))))
    assert [(one.model is None, list(one.calls), list(one.results)) for one in found] == [
        (True, ["call_1"], ["call_1"]),
        (False, ["call_2", "call_3"], ["call_2"]),
    ]
    assert isinstance(found[0], CallOfModel)
