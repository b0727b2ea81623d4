"""What agents did, by their spans: as OpenTelemetry's conventions have them, as OpenInference does, and with gaps."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_pipeline.operations.recorded import logs as reading
from eval_pipeline_plugins.traces.conversations import read_otlp, turns_of
from eval_pipeline_plugins.traces.otlp import Span
from eval_pipeline_plugins.tracks.agent.running.blocking import close_worlds
from eval_pipeline_plugins.tracks.agent.trajectory import parse_trajectory
from eval_pipeline_tests.operations.imports import imported
from eval_pipeline_tests.support import Lab

TASK, SQL = "How many orders are there?", {"query": "SELECT count(*) FROM orders"}
USER = {"role": "user", "parts": [{"type": "text", "content": TASK}]}
CALLS = {
    "role": "assistant",
    "parts": [
        {"type": "reasoning", "content": "hm"},
        {"type": "text", "content": "I look."},
        {"type": "tool_call", "id": "c1", "name": "sql", "arguments": SQL},
    ],
}
GAVE = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "n\n3"}]}
SAYS = {"role": "assistant", "parts": [{"type": "text", "content": "There are 3."}]}


def chat(span: str, start: int, asked: list[Any], said: Any, **more: Any) -> Span:
    told = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 10}
    told |= {"gen_ai.input.messages": json.dumps(asked), "gen_ai.output.messages": json.dumps([said] if said else [])}
    return Span("t", span, "root", "chat m", start * 10**9, (start + 1) * 10**9, attributes=told, **more)


def tool(start: int, error: str | None = None, **told: Any) -> Span:
    named = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "sql"}
    attributes = named | {f"gen_ai.tool.call.{name}": one for name, one in told.items()}
    return Span("t", f"x{start}", "root", "execute_tool sql", start * 10**9, (start + 1) * 10**9, error, attributes)


def inferred(span: str, kind: str, start: int, **told: Any) -> Span:
    named = {"openinference.span.kind": kind} | {name.replace("__", "."): one for name, one in told.items()}
    return Span(
        "t", span, "" if span == "root" else "root", kind.lower(), start * 10**9, (start + 1) * 10**9, attributes=named
    )


CALLED = {
    "llm__output_messages__0__message__role": "assistant",
    "llm__output_messages__0__message__content": "I look.",
    "llm__output_messages__0__message__tool_calls__0__tool_call__function__name": "sql",
    "llm__output_messages__0__message__tool_calls__0__tool_call__function__arguments": json.dumps(SQL),
}
ASKED = {"llm__input_messages__0__message__role": "user", "llm__input_messages__0__message__content": TASK}
ROOT = Span(
    "t", "root", "", "invoke_agent", 1, attributes={"gen_ai.operation.name": "invoke_agent", "app.case": "count"}
)
FIRST, LAST = chat("a", 1, [USER], CALLS), chat("b", 5, [USER, CALLS, GAVE], SAYS)
LOOKED = ("model", "I look.", ["sql"])
SAID: tuple[str, str, list[str]] = ("model", "There are 3.", [])
ANSWER = ("tool", "", ["answer"])
TRACES = {
    "result in a span": ([ROOT, FIRST, tool(3, id="c1", arguments=json.dumps(SQL), result="n\n3"), LAST],
                         [LOOKED, ("tool", "n\n3", ["sql"]), SAID, ANSWER], "There are 3."),
    "result in messages": ([ROOT, FIRST, LAST], [LOOKED, ("tool", "n\n3", ["sql"]), SAID, ANSWER], "There are 3."),
    "span without its result": ([ROOT, FIRST, tool(3, id="c1"), LAST],
                                [LOOKED, ("tool", "n\n3", ["sql"]), SAID, ANSWER], "There are 3."),
    "a call that was not made": ([ROOT, FIRST], [LOOKED], None),
    "a call that failed": ([ROOT, FIRST, tool(3, "no table", id="c1"), chat("b", 5, [USER, CALLS], SAYS)],
                           [LOOKED, ("tool", "no table", ["sql"]), SAID, ANSWER], "There are 3."),
    "a tool that no message tells of": ([ROOT, tool(0, result="x"), FIRST, LAST],
                                        [("tool", "x", ["sql"]), LOOKED, ("tool", "n\n3", ["sql"]), SAID, ANSWER],
                                        "There are 3."),
    "no tool": ([ROOT, chat("a", 1, [USER], SAYS)], [SAID, ANSWER], "There are 3."),
    "the model failed": ([ROOT, FIRST, chat("b", 5, [USER, CALLS, GAVE], None, error="503")],
                         [LOOKED, ("tool", "n\n3", ["sql"]), ("model", "", [])], None),
    "OpenInference": ([
        inferred("root", "AGENT", 1), inferred("a", "LLM", 1, **ASKED, **CALLED),
        inferred("x", "TOOL", 3, tool__name="sql", output__value="n\n3"),
        inferred("b", "LLM", 5, **ASKED, llm__output_messages__0__message__content="There are 3."),
    ], [LOOKED, ("tool", "n\n3", ["sql"]), SAID, ANSWER], "There are 3."),
}  # fmt: skip


@pytest.mark.parametrize("name", TRACES)
def test_spans_of_an_agent_are_its_attempt(name: str) -> None:
    spans, steps, answer = TRACES[name]
    (entry,) = turns_of("talk", [spans])
    told: Any = entry.given["trajectory"]
    found = [
        (one["kind"], one.get("text", one.get("result")), [call["name"] for call in one.get("calls", [one])])
        for one in told["steps"]
    ]
    assert found == steps
    assert (told["answer"], told["end_state"]) == (answer, None)
    assert ("503" in told["why"]) == (name == "the model failed")
    failed = [one["name"] for one in told["steps"] if one.get("error_class")]
    assert failed == (["sql"] if name == "a call that failed" else [])
    sql = [one["arguments"] for one in told["steps"] if one["kind"] == "tool" and one["result"] == "n\n3"]
    assert all(one == SQL for one in sql)
    parse_trajectory(json.dumps(told))


@pytest.mark.parametrize("file", ["agent-pydantic-ai.jsonl", "agent-openinference.jsonl"])
def test_what_pydantic_ai_wrote_is_an_attempt(file: str) -> None:
    """An agent of pydantic-ai 2.68 on its `TestModel`: its own spans (version 5), and those of OpenInference for it."""
    (entry,) = read_otlp(Path(__file__).parent / "recorded_traces" / file)
    told: Any = entry.given["trajectory"]
    assert entry.task and entry.task.question == TASK
    assert [one["kind"] for one in told["steps"]] == ["model", "tool", "model", "tool"]
    assert told["steps"][0]["calls"] == [{"name": "sql", "arguments": {"query": "a"}}]
    assert (told["steps"][1]["arguments"], told["steps"][1]["result"]) == ({"query": "a"}, "n\n3")
    assert (told["answer"], told["ended"]) == ('{"sql":"n\\n3"}', "answered")


def test_a_conversation_without_an_agent_is_no_attempt() -> None:
    (entry,) = turns_of("talk", [[chat("a", 1, [USER], SAYS)]])
    assert "trajectory" not in entry.given


def otlp(span: Span) -> dict[str, Any]:
    values = {name: {"intValue" if type(one) is int else "stringValue": one} for name, one in span.attributes.items()}
    told = {"traceId": "0" * 31 + "1", "spanId": span.id.encode().hex().zfill(16), "name": span.name}
    told |= {"parentSpanId": span.parent.encode().hex().zfill(16) if span.parent else ""}
    times = {"startTimeUnixNano": str(span.start), "endTimeUnixNano": str(span.end)}
    return told | times | {"attributes": [{"key": name, "value": one} for name, one in values.items()]}


def test_a_trace_is_imported_as_an_attempt_at_a_task(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "at_arms_length", lambda work, arguments, below: work(*arguments))
    cases = [{"id": "count", "world": "empty", "task": TASK, "gold": [{"answer": 3}], "checks": ["answer"]}]
    folder = lab.suite("small", cases, track="agent") / "worlds" / "empty"
    (folder / "files").mkdir(parents=True)
    (folder / "world.yaml").write_text(yaml.safe_dump({"description": "Nothing."}))
    spans, _, _ = TRACES["result in a span"]
    file = tmp_path / "spans.jsonl"
    file.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(map(otlp, spans))}]}]}))
    try:
        assert "1 of 1 readable" in imported(lab, file, "--map", "case_id=app.case", form="otlp", name="theirs")
        lab.evaluate(version="theirs", publish=True)
    finally:
        close_worlds()
    assert lab.sql("SELECT correct, agent_answer, tool_calls FROM agent_turns") == [(True, "There are 3.", 2)]
    assert [row[0] for row in lab.sql("SELECT kind FROM steps ORDER BY step")] == ["model", "tool", "model", "tool"]
