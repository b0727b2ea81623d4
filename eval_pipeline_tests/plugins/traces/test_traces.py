"""Traces that real instrumentations wrote (`recorded_traces`), and forms of them that these do not have."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.core.reading.masking import Masking, rules_of
from eval_pipeline.operations.recorded.entries import Entry, LoggedTask
from eval_pipeline.operations.recorded.logs import recognised
from eval_pipeline.operations.recorded.traffic import conversations, masked, near_duplicates, stratum
from eval_pipeline_plugins.traces.attempts import _seconds
from eval_pipeline_plugins.traces.conversations import read_otlp, turns_of
from eval_pipeline_plugins.traces.otlp import Event, Span
from eval_pipeline_tests.fakes.traced_calls import QUESTIONS
from eval_pipeline_tests.support import Lab

TRACES = Path(__file__).parent / "recorded_traces"
WEATHER = "What is the weather in Oslo? Write to ola@example.org."


def told(entry: Entry) -> tuple[Any, ...]:
    assert entry.task is not None
    names = ("response", "input_tokens", "output_tokens", "model", "prompt")
    return entry.task.id, entry.task.turn, entry.task.question, *(entry.given.get(name) for name in names)


@pytest.mark.parametrize(
    "file", ["openai-v2.binpb", "openai-v2-events.jsonl", "openai-openinference.jsonl", "anthropic-traceloop.jsonl"]
)
def test_what_is_read_from_traces_of_instrumentations(file: str) -> None:
    is_openai = file.startswith("openai")
    assert recognised(TRACES / file) == "otlp"
    found = list(read_otlp(TRACES / file))
    model, tokens = ("fake-2026", [(30, 7), (30, 7)]) if is_openai else ("claude-fake", [(15, 2), (27, 2)])
    for turn, (question, answer) in enumerate(zip(QUESTIONS, ("Paris", "Madrid"), strict=True)):
        assert told(found[turn]) == ("talk-1", turn, question, answer, *tokens[turn], model, "[system]\nBe brief.")
        assert found[turn].task and found[turn].task.tags == ("route:/chat",)
        assert found[turn].given["tool"] == "fake-service" and float(str(found[turn].given["latency_ms"])) > 0
        assert len(str(found[turn].given["trace_id"])) == 32 and len(str(found[turn].given["span_id"])) == 16
    if is_openai:
        weather, failed = found[2:]
        # Two calls, the first of which calls a tool: 40 + 30 and 9 + 7 tokens.
        assert told(weather)[1:] == (0, WEATHER, "3 degrees, rain", 70, 16, "fake-2026", None)
        assert weather.task and "tool:get_weather" in weather.task.tags
        assert told(failed)[2:4] == ("What is 6 times 7?", None) and "made to fail" in str(failed.given["error"])
    else:
        assert len(found) == 2


def test_traces_without_content_say_how_to_have_it() -> None:
    with pytest.raises(InputError, match="CAPTURE_MESSAGE_CONTENT"):
        list(read_otlp(TRACES / "openai-v2-silent.jsonl"))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b'{"resourceSpans": []}\n', "no span in it is a call"),
        (b'{"resourceSpans": []}\n{"other": 1}\n', ":2: expected an OTLP export request"),
        (b'{"resourceSpans": []}\n{"resourc', ":2: is not JSON"),
        (b"\x00\x00\x00\x05\x0a\x03\x0a", "cut off or damaged in the message at byte 0"),
        (b"\x0a\x7f\x0a\x00", "cut off or damaged in the message at byte 0"),
        (b"\x01\x02{", "is neither OTLP as JSON nor as protobuf"),
    ],
)
def test_damaged_traces_are_told_with_their_place(tmp_path: Path, content: bytes, what: str) -> None:
    file = tmp_path / "traces"
    file.write_bytes(content)
    with pytest.raises(InputError) as raised:
        list(read_otlp(file))
    assert what in str(raised.value)


def call(span: str, parent: str, *asked: str, said: str = "", start: int = 1, **more: Any) -> Span:
    """A call that was asked texts of user and assistant by turns."""
    messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(asked)]
    attributes: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(messages)}
    if said:
        attributes["gen_ai.output.messages"] = json.dumps([{"role": "assistant", "content": said}])
    return Span("t", span, parent, "chat", start, start + 1, attributes={**attributes, **more})


def asked_and_said(*traces: list[Span]) -> list[tuple[str, Any]]:
    entries = turns_of("c", traces)
    return [(entry.task.question, entry.given.get("response")) for entry in entries if entry.task]


def test_turns_of_a_conversation() -> None:
    root = Span("t", "r", "", "agent")
    # A loop in one trace: what the user says more is a further turn.
    loop = [root, call("a", "r", "Hi", said="Yes?"), call("b", "r", "Hi", "Yes?", "Why?", said="So.", start=2)]
    assert asked_and_said(loop) == [("Hi", "Yes?"), ("Why?", "So.")]
    # An agent within an agent is asked something else, and makes no turn.
    inner = [root, call("a", "r", "Why?", said="[ask]"), call("b", "r", "Look it up", said="x", start=2)]
    assert asked_and_said([*inner, call("c", "r", "Why?", "[ask]", said="So.", start=3)]) == [("Why?", "So.")]
    # What was said before the first span is part of the question.
    assert asked_and_said([call("a", "", "Hi", "Yes?", "Why?", said="So.")]) == [
        ("[user]\nHi\n\n[assistant]\nYes?\n\n[user]\nWhy?", "So.")
    ]
    # Each trace tells the newest message only.
    assert asked_and_said([call("a", "", "Hi", said="Yes?")], [call("b", "", "Why?", said="So.")]) == [
        ("Hi", "Yes?"), ("Why?", "So."),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("start", "end", "seconds"),
    [(5_000_000_000, 8_500_000_000, 3.5), (5, 5, 0.0), (8, 5, None), (0, 5, None)],
)
def test_how_long_a_span_took_is_known_where_its_times_are(start: int, end: int, seconds: float | None) -> None:
    assert _seconds(Span("t", "a", "", "chat", start, end)) == seconds


@pytest.mark.parametrize("parents", ["a", "b", "bc"], ids=["itself", "each other", "a ring beyond"])
def test_calls_whose_parents_go_in_a_ring_are_not_lost(parents: str) -> None:
    """Nothing is around the other then: as with a parent that is not in the file, each call counts."""
    ring = [
        call("a", parents[0], "Why?", said="So."),
        *(Span("t", name, other, "step") for name, other in RINGS[parents]),
    ]
    assert asked_and_said(ring) == [("Why?", "So.")]


RINGS = {"a": "", "b": [("b", "a")], "bc": [("b", "c"), ("c", "b")]}


def test_a_span_around_calls_and_a_second_one_of_the_same_answer_are_no_further_calls() -> None:
    used = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}
    one = call("a", "r", "Why?", said="So.", **used, **{"gen_ai.response.id": "1"})
    bare = Span("t", "b", "r", attributes={"gen_ai.operation.name": "chat", **used, "gen_ai.response.id": "1"})
    around = replace(
        call("r", "", "Why?", said="So.", **used), attributes={"gen_ai.operation.name": "invoke_agent", **used}
    )
    (entry,) = turns_of("c", [[around, bare, one]])
    assert (entry.given["input_tokens"], entry.given["output_tokens"], entry.given["response"]) == (10, 2, "So.")
    # Where the calls have no content, what is around them tells it.
    whole = replace(around, attributes={**one.attributes, "gen_ai.operation.name": "invoke_agent"})
    silent = replace(bare, attributes={**bare.attributes, "gen_ai.response.id": "2"})
    (entry,) = turns_of("c", [[whole, silent]])
    assert entry.task and (entry.task.question, entry.given["response"]) == ("Why?", "So.")


def test_verdicts_and_attributes_of_spans() -> None:
    judged = {"gen_ai.evaluation.name": "helpful", "gen_ai.evaluation.score.label": "pass"}
    events = (Event("gen_ai.evaluation.result", judged),)
    root = Span("t", "r", "", "agent", attributes={"app.gold": "So."}, events=events)
    (entry,) = turns_of("c", [[root, call("a", "r", "Why?", said="So.", start=1_790_000_000 * 10**9)]])
    assert entry.given["source_correct"] is True and entry.given["source_scores"] == {"helpful": "pass"}
    assert entry.found["app.gold"] == "So."
    assert stratum([entry]) == ("judged right", "agent", "1 turn", "2026-09-21")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Write to Ola.Nordmann+x@mail.example.org.", "Write to [email]."),
        ("Call +47 22 86 44 00 or (030) 123 45 67", "Call [phone] or [phone]"),
        ("Pay to DE89 3704 0044 0532 0130 00 now", "Pay to [iban] now"),
        ("Not an IBAN: DE88 3704 0044 0532 0130 00", "Not an IBAN: DE88 3704 0044 0532 0130 00"),
        ("Card 4111 1111 1111 1111, order 4111 1111 1111 1112", "Card [card], order 4111 1111 1111 1112"),
        ("From 192.168.0.17 and 2001:db8::1.", "From [ip] and [ip]."),
        ("Version 1.2.3, at 12:30:45, 300.1.1.1, 2026-11-28, 1,234,567.89 in 2024", None),
        ("f(x) = 0.12345678 * 1000000", None),
    ],
)
def test_values_of_personal_kind_are_masked(text: str, wanted: str | None) -> None:
    assert Masking(rules_of()).text(text) == (text if wanted is None else wanted)


def test_rules_of_a_file_come_first_and_can_take_away_ours(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("customer: 'C-[0-9]{6}'\nphone: null\n")
    masking = Masking(rules_of(file))
    assert masking.value({"a": ["C-123456, +47 22 86 44 00, a@b.no"]}) == {
        "a": ["[customer], +47 22 86 44 00, [email]"]
    }
    assert masking.counts == {"customer": 1, "email": 1}
    for wrong in ("- a", "a: '('", "a: 'x*'", "a: 1"):
        file.write_text(wrong)
        with pytest.raises(InputError):
            rules_of(file)


def test_an_entry_is_masked_whole() -> None:
    task = LoggedTask("a@b.no", "Is it a@b.no?", ("a@b.no",), ("route:/a@b.no",), turn=0)
    given = {"response": "a@b.no", "trace_id": "4" * 32}
    entry = Entry(None, "conversation a@b.no", given, {"user": "a@b.no"}, fault="a@b.no", task=task)
    found = masked(entry, Masking(rules_of()))
    assert "a@b.no" not in repr(found) and found.given["trace_id"] == "4" * 32


def test_near_duplicates_share_a_name() -> None:
    long = "please tell me how many items of the kind seven were sold in the second quarter of the year"
    names, said = near_duplicates(
        [long, "something else that nobody asked before", long.upper(), f"{long} 2026", "why"]
    )
    assert names[0] and names[0] == names[2] == names[3]
    assert names[1] == names[4] == ""
    assert said == ["3 of 5 conversations ask almost what another one asks, and share a cluster with it"]


def test_entries_of_a_conversation_follow_each_other() -> None:
    entries = [Entry(None, task=LoggedTask(name, "Q", turn=turn)) for name, turn in (("a", 0), ("a", 1), ("b", 0))]
    found = conversations(iter([*entries, Entry(None), Entry(None, task=LoggedTask("b", "Q"))]))
    assert [len(own) for own in found] == [2, 1, 1, 1]


@pytest.mark.always
def test_traces_become_a_suite_with_answers_and_the_accuracy_on_the_traffic(lab: Lab, tmp_path: Path) -> None:
    spans = []
    for number in range(24):
        more = {"app.gold": "yes", "session.id": f"s{number}", "http.route": f"/{number % 2}"}
        one = call(f"{number:016x}", "", f"Is {number} a number?", said="yes" if number % 2 else "no", **more)
        attributes = [{"key": key, "value": {"stringValue": value}} for key, value in one.attributes.items()]
        start = (1_790_000_000 + number) * 10**9
        spans.append(
            {"traceId": f"{number + 1:032x}", "spanId": f"{number + 1:016x}", "name": "chat", "attributes": attributes}
            | {"startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 10**9)}
        )
    file = tmp_path / "traffic.jsonl"
    file.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    said = lab.cli("import", "traces", str(file), "--sample", "16", "--map", "expected=app.gold").text
    assert "16 of 24 conversations drawn from 2 strata" in said and "16 predictions imported" in said
    assert "eval-pipeline run --suite traffic --model-version traffic-answers" in said
    said = lab.cli("run", "--suite", "traffic", "--model-version", "traffic-answers", "--no-report").text
    assert "traffic:" in said
    rows = lab.sql("SELECT n, mean, method FROM statistics WHERE split = 'traffic' AND metric = 'correct'")
    assert rows == [(16, 0.5, "stratified")]
    said = lab.cli("import", "traces", str(file), "--suite", "traffic").text
    assert "the suite 'traffic' exists" in said
