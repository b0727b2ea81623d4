"""Scores as events of OpenTelemetry, and as records of Every Eval Ever."""

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline_plugins.logs.records import read_phoenix
from eval_pipeline_tests.operations.imports import imported
from eval_pipeline_tests.support import Lab

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
ANSWERS = [
    {"case_id": "alpha", "turn_index": 0, "answer": "50", "trace_id": TRACE, "span_id": SPAN, "stop_reason": "stop"},
    {"case_id": "alpha", "turn_index": 1, "answer": "1", "input_tokens": 10, "output_tokens": 2, "latency_ms": 500.5},
    {"case_id": "beta", "turn_index": 0, "error": "no answer"},
]
WHO = ("--suite", "small", "--model-version", "old")


@pytest.fixture
def scored(home: Lab) -> Lab:
    """A home with three recorded answers, of which the first is right and comes from a trace, and the last failed."""
    options = ("--model", "openai/gpt-5", "--sampling", "temperature=0.5", "--asked-on", "2026-02-01")
    imported(home, ANSWERS, *options)
    home.evaluate(version="old", publish=True)
    return home


def exported(lab: Lab, form: str, folder: Path, *options: str, code: int = 0) -> str:
    said = lab.cli("export", form, *WHO, "--output", str(folder), *options)
    assert said.code == code, said.text
    return said.text


def lines(folder: Path, ending: str) -> list[Any]:
    (file,) = folder.rglob(f"*{ending}")
    return [json.loads(line) for line in file.read_text().splitlines()]


def plain(attributes: list[Any]) -> dict[str, Any]:
    return {one["key"]: next(iter(one["value"].values())) for one in attributes}


def records(told: list[Any], kind: str, what: str) -> Iterator[Any]:
    for line in told:
        for resource in line[f"resource{kind}"]:
            for scope in resource[f"scope{kind}"]:
                yield from scope[what]


def test_scores_are_events_on_the_span_of_the_answer(scored: Lab, tmp_path: Path) -> None:
    said = exported(scored, "otlp", tmp_path)
    assert "2 spans of answers that come from no trace" in said
    events = list(records(lines(tmp_path, "events.jsonl"), "Logs", "logRecords"))
    assert {event["eventName"] for event in events} == {"gen_ai.evaluation.result"}
    found = {
        (p["eval_pipeline.turn_id"], p["gen_ai.evaluation.name"]): p for e in events if (p := plain(e["attributes"]))
    }
    verdicts = {
        turn: (told["gen_ai.evaluation.score.value"], told["gen_ai.evaluation.score.label"])
        for (turn, name), told in found.items()
        if name == "correct"
    }
    wrong = (0.0, "incorrect")
    assert verdicts == {"small/alpha#0": (1.0, "correct"), "small/alpha#1": wrong, "small/beta#0": wrong}
    assert "no answer" in found["small/beta#0", "correct"]["gen_ai.evaluation.explanation"]
    label = found["small/beta#0", "failure_mode"]
    assert label["gen_ai.evaluation.score.label"] == "no_answer" and "gen_ai.evaluation.score.value" not in label
    # Every value on record is an event, and no other.
    held = scored.sql("SELECT turn_id, metric FROM metrics WHERE value IS NOT NULL OR label IS NOT NULL")
    assert found.keys() - {(turn, "correct") for turn in verdicts} == set(held)

    ids = {(e["traceId"], e["spanId"], plain(e["attributes"])["eval_pipeline.turn_id"]) for e in events}
    spans = list(records(lines(tmp_path, "spans.jsonl"), "Spans", "spans"))
    told = {(s["traceId"], s["spanId"], plain(s["attributes"])["eval_pipeline.turn_id"]): s for s in spans}
    assert ids == {(TRACE, SPAN, "small/alpha#0"), *told}
    second = next(span for (*_, turn), span in told.items() if turn == "small/alpha#1")
    assert int(second["endTimeUnixNano"]) - int(second["startTimeUnixNano"]) == 500_500_000
    wanted = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5",
        "gen_ai.usage.input_tokens": "10", "gen_ai.usage.output_tokens": "2", "gen_ai.request.temperature": 0.5,
        "gen_ai.conversation.id": "small/alpha",
    }  # fmt: skip
    assert {name: plain(second["attributes"]).get(name) for name in wanted} == wanted
    failed = next(span for (*_, turn), span in told.items() if turn == "small/beta#0")
    assert failed["status"]["code"] == 2 and plain(failed["attributes"])["error.type"] == "recorded_error"


@pytest.mark.always
def test_what_is_exported_is_otlp(scored: Lab, tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.proto")
    from google.protobuf.json_format import Parse
    from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    exported(scored, "otlp", tmp_path)
    for ending, form in (("events.jsonl", LogsData), ("spans.jsonl", TracesData)):
        for line in lines(tmp_path, ending):
            Parse(json.dumps(_as_protobuf(line)), form())  # refuses fields that it does not know


def _as_protobuf(value: Any) -> Any:
    """OTLP writes ids in hexadecimal digits, where JSON of protobuf has base64."""
    if isinstance(value, list):
        return [_as_protobuf(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: base64.b64encode(bytes.fromhex(one)).decode() if name in {"traceId", "spanId"} else _as_protobuf(one)
        for name, one in value.items()
    }


@pytest.mark.always
def test_records_of_every_eval_ever_have_means_and_the_verdict_on_each_answer(scored: Lab, tmp_path: Path) -> None:
    exported(scored, "every-eval-ever", tmp_path, "--organization", "us", "--relation", "third_party")
    (file,) = tmp_path.glob("data/small/openai/gpt-5/*[!s].json")
    record, answers = json.loads(file.read_text()), lines(tmp_path, "_samples.jsonl")
    assert record["source_metadata"]["evaluator_relationship"] == "third_party"
    means = {one["evaluation_result_id"]: one["score_details"] for one in record["evaluation_results"]}
    columns = "metric, mean, se, low, high, n"
    held = {metric: told for metric, *told in scored.sql(f"SELECT {columns} FROM statistics WHERE split = 'all'")}
    assert means["small.correct"]["score"] == pytest.approx(1 / 3)
    for name, told in means.items():
        mean, se, low, high, n = held[name.removeprefix("small.")]
        assert (told["score"], told["uncertainty"]["num_samples"]) == (mean, n)
        ends = told["uncertainty"].get("confidence_interval")
        assert (low, high) == ((ends["lower"], ends["upper"]) if ends else (None, None))
        assert se == (
            told["uncertainty"]["standard_error"]["value"] if "standard_error" in told["uncertainty"] else None
        )
    assert [one["metric_config"]["lower_is_better"] for one in record["evaluation_results"]
            if one["metric_config"]["metric_name"] == "has_error"] == [True]  # fmt: skip
    assert [(one["sample_id"], one["evaluation"]["is_correct"], one["output"]["raw"] == []) for one in answers] == [
        ("small/alpha#0", True, False), ("small/alpha#1", False, False), ("small/beta#0", False, True),
    ]  # fmt: skip
    assert answers[1]["token_usage"] == {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
    detailed, samples = record["detailed_evaluation_results"], file.with_name(f"{file.stem}_samples.jsonl")
    assert (tmp_path / detailed["file_path"]) == samples
    assert (detailed["total_rows"], detailed["checksum"]) == (3, hashlib.sha256(samples.read_bytes()).hexdigest())
    assert {one["evaluation_id"] for one in answers} == {record["evaluation_id"]}

    said = exported(scored, "every-eval-ever", tmp_path, "--organization", "us", "--relation", "friends", code=2)
    assert "expected one of first_party" in said


@pytest.mark.parametrize(("name", "value"), [("trace_id", "xyz"), ("trace_id", TRACE.upper()), ("span_id", TRACE)])
def test_an_id_of_a_span_has_its_form(home: Lab, name: str, value: str) -> None:
    assert name in imported(home, [ANSWERS[1] | {name: value}], code=2)


def test_spans_of_other_tools_keep_their_ids(tmp_path: Path) -> None:
    spans = [
        {"context.trace_id": TRACE, "context.span_id": SPAN, "span_kind": "LLM"},
        {"context.trace_id": "0af7-uuid", "context.span_id": "7", "span_kind": "LLM"},
    ]
    file = tmp_path / "spans.jsonl"
    asked = {"attributes.input.value": "Why?", "attributes.output.value": "So."}
    file.write_text("".join(json.dumps(span | asked) + "\n" for span in spans))
    found = [{name: entry.given.get(name) for name in ("trace_id", "span_id")} for entry in read_phoenix(file)]
    assert found == [{"trace_id": TRACE, "span_id": SPAN}, {"trace_id": None, "span_id": None}]
