"""A trajectory is a text that is read as it was written, whoever wrote it."""

import json
from typing import Any

import pytest

from eval_pipeline.answers.json_text import ArtefactError
from eval_pipeline.core.model import CallErrorKind, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.sandbox.world.changes import ChangedFile
from eval_pipeline.stages.attempts.agents.acting import Attempted
from eval_pipeline.tracks.capabilities import ActLimits
from eval_pipeline_plugins.tracks.agent.metrics import failure_mode, recovered_errors, repeated_calls, tool_errors
from eval_pipeline_plugins.tracks.agent.trajectory import ENDS, parse_trajectory, trajectory_text

MADE = {"name": "n", "kind": "int", "rows": None, "columns": [["", "ab"]], "values": [["1"]]}
STEPS: list[dict[str, Any]] = [
    {"kind": "model", "text": "I look.", "calls": [{"name": "sql", "arguments": {"query": "SELECT 1"}}], "usd": 0.1},
    {"kind": "tool", "name": "sql", "arguments": {"query": "x"}, "result": "no", "error_class": "syntax_error"},
    {"kind": "tool", "name": "sql", "arguments": {"query": "y"}, "result": "1", "rows": 1, "bytes": 9, "seconds": 0.5},
    {"kind": "tool", "name": "sql", "arguments": {"query": "y"}, "result": "1"},
    {"kind": "tool", "name": "python", "arguments": {"code": "n = 1"}, "result": "", "made": [MADE]},
    {"kind": "tool", "name": "answer", "arguments": {"answer": 1}, "result": ""},
]


def told(**changes: Any) -> str:
    return json.dumps({"steps": STEPS, "answer": 1, "ended": "answered", "end_state": {}, **changes})


def test_a_trajectory_is_read_as_it_was_written() -> None:
    read = parse_trajectory(told(end_state={"a.txt": ChangedFile("file", b"x").as_json(), "b": None}))
    assert parse_trajectory(trajectory_text(read)) == read
    assert read.answers() == [1]
    assert [list(one.made) for one in read.steps[3:]] == [[], [MADE], []]
    assert read.steps[2].measured == {"seconds": 0.5}
    tools = read.tool_steps()
    assert (tool_errors(tools), recovered_errors(tools), repeated_calls(tools)) == (1, 1, 1)


def test_every_end_of_the_loop_is_known() -> None:
    version, limits = (
        ModelVersion(name="m", provider="oracle"),
        ActLimits(steps=0, model_calls=0, tokens=0, usd=0.0, seconds=0.0),
    )
    done = Attempted(version, limits, ())
    ends = {"answered", "gave_up", "crashed", "harness", "steps", "model_calls", "tokens", "usd", "seconds"}
    ends |= {
        CallErrorKind.REFUSED.value,
        CallErrorKind.MAX_TOKENS.value,
    }  # paid for, and no answer
    assert set(ENDS) == ends
    for end in ends:
        text = done.as_response(end, "why", {}).text
        assert parse_trajectory(text).ended == end
        mode = failure_mode(None if end == "harness" else False, {}, {}, end, answered=False)
        limits_ = dict.fromkeys(("steps", "model_calls", "tokens", "usd", "seconds"), "out_of_budget")
        assert mode == {"harness": "harness", "crashed": "crashed", **limits_}.get(end, "no_answer")
    tried = {"forbidden": [{"passed": False}]}
    assert failure_mode(False, tried, {}, "crashed", answered=False) == "forbidden"
    assert done.as_response("steps", "", {}).usage == Usage(None, None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("42", "expected a list of calls"),
        ("[]", "expected a list of calls"),
        ("[" * 5000, "no trajectory"),
        ('[{"tool": "sql"}]', "no 'name'"),
        ('[{"name": "sql", "arguments": "x"}]', "'arguments'"),
        (told(ended="slept"), "unknown end 'slept'"),
        (told(steps=[7]), "neither of kind"),
        (told(end_state=[7]), "no object"),
        (told(end_state={"a": {"sha256": "0", "size": 1, "body": "eA=="}}), "a: a kept file is damaged"),
        (told(end_state={"a": {"size": 1}}), "a: no change of a file"),
    ],
)
def test_what_is_no_trajectory_is_told_in_a_sentence(text: str, why: str) -> None:
    with pytest.raises(ArtefactError, match=why):
        parse_trajectory(text)
