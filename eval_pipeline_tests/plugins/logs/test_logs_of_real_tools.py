"""Logs that the newest packages of peers write, imported and scored; and our exports, read by whom they are for.

`EVAL_TOOLS` names a folder for their environments, which are then installed once.
"""

import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from eval_pipeline_tests.fakes import real_tools, traced_calls
from eval_pipeline_tests.fakes.anthropic_server import KEY as ANTHROPIC_KEY
from eval_pipeline_tests.fakes.anthropic_server import AnthropicServer
from eval_pipeline_tests.fakes.openai_server import KEY as OPENAI_KEY
from eval_pipeline_tests.fakes.openai_server import USAGE, OpenAIServer, Raw, Says, Status
from eval_pipeline_tests.support import Lab

pytestmark = pytest.mark.soak

OURS = [True, False, True, True]
"""Whether the track text counts each answer as right: neither case nor further words matter."""

_INSTRUMENTATIONS = (
    "anthropic",
    "httpx",
    "openai",
    "openinference-instrumentation-openai",
    "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry-instrumentation-anthropic",
    "opentelemetry-instrumentation-openai",
    "opentelemetry-instrumentation-openai-v2",
    "opentelemetry-util-genai==0.4b0",  # that of openai-v2 2.4b0
)
_RECORDS = ("eval", "instance_level_eval")
_READ = r"""
import base64, glob, re
from google.protobuf.json_format import Parse
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from opentelemetry.trace import SpanContext

def read(ending, form):
    for line in open(glob.glob("*" + ending)[0]):  # ids are hexadecimal in OTLP, and base64 in JSON of protobuf
        encoded = lambda found: f'"{found[1]}":"{base64.b64encode(bytes.fromhex(found[2])).decode()}"'
        yield Parse(re.sub('"(traceId|spanId)":"([0-9a-f]+)"', encoded, line), form())

logs = [scope for told in read(".events.jsonl", LogsData) for one in told.resource_logs for scope in one.scope_logs]
traces = [scope for it in read(".spans.jsonl", TracesData) for one in it.resource_spans for scope in one.scope_spans]
events = {(event.trace_id, event.span_id, event.event_name) for scope in logs for event in scope.log_records}
spans = {(span.trace_id, span.span_id) for scope in traces for span in scope.spans}
assert spans and events == {(*span, "gen_ai.evaluation.result") for span in spans}
assert all(SpanContext(int.from_bytes(t, "big"), int.from_bytes(s, "big"), False).is_valid for t, s in spans)
"""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(os.environ.get("EVAL_TOOLS") or tmp_path_factory.mktemp("tools"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize("name", real_tools.TOOLS)
def test_a_log_of_a_real_tool_becomes_a_suite_with_answers_and_both_verdicts(
    lab: Lab, tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name == "promptfoo" and not shutil.which("npm"):
        pytest.skip("needs npm")
    monkeypatch.setitem(USAGE, "total_tokens", 37)  # Inspect wants it
    write, theirs = real_tools.TOOLS[name]
    with OpenAIServer(model=real_tools.said) as server:
        log = write(tools, tmp_path, f"{server.url}/v1")
    assert len(server.asked) == len(real_tools.ASKED)
    said = lab.cli("import", "log", str(log), "--suite", "capitals")
    assert said.code == 0, said.text
    assert f"recognised as {name}" in said.text and "4 cases imported" in said.text
    (version,) = {folder.name for folder in lab.home.predictions.iterdir()}
    assert lab.cli("run", "--suite", "capitals", "--model-version", version, "--no-report").code == 0
    columns = "question, expected, response, correct, source_correct"
    rows = lab.sql(f"SELECT {columns} FROM source_verdicts JOIN attempts USING (turn_id, sample) ORDER BY ALL")
    wanted = zip(real_tools.ASKED.items(), OURS, theirs, strict=True)
    assert rows == sorted((q, right, answer, ours, their) for (q, (right, answer)), ours, their in wanted)
    both = [sum((a, b) == pair for a, b in zip(OURS, theirs, strict=True)) for pair in ((1, 1), (1, 0), (0, 1), (0, 0))]
    counts = "both_right, only_ours, only_theirs, both_wrong"
    assert lab.sql(f"SELECT {counts} FROM source_agreement") == [tuple(both)]


@pytest.mark.parametrize("name", traced_calls.SETTINGS)
def test_traces_that_instrumentations_write_become_conversations(
    lab: Lab, tools: Path, tmp_path: Path, name: str
) -> None:
    is_openai = name.startswith("openai")
    server, key = (OpenAIServer(_weather()), OPENAI_KEY) if is_openai else (AnthropicServer(_capital), ANTHROPIC_KEY)
    python = real_tools.venv(tools, "traced", *_INSTRUMENTATIONS)
    with server:
        real_tools.run(tmp_path, python, traced_calls.__file__, name, server.url, key, tmp_path)
    logs = tmp_path / "logs.jsonl"
    for file in (tmp_path / "traces.jsonl", *(() if logs.exists() else (tmp_path / "traces.binpb",))):
        folder = tmp_path / file.suffix[1:]
        folder.mkdir()
        for part in (file, *([logs] if logs.exists() else [])):
            shutil.copy(part, folder)
        said = lab.cli("import", "traces", str(folder), "--suite", folder.name, "--mask").text
        if name.endswith("silent"):
            assert "CAPTURE_MESSAGE_CONTENT" in said
            continue
        assert f"{4 if is_openai else 2} predictions imported" in said
        (version,) = (lab.home.predictions / f"{folder.name}-answers").iterdir()
        rows = [json.loads(line) for line in version.read_text().splitlines()]
        answers = ["Paris", "Madrid", *(["3 degrees, rain", ""] if is_openai else [])]
        assert [row["text"] for row in rows] == answers
        tokens = [30, 30, 70, None] if is_openai else [15, 27]
        assert [row["input_tokens"] for row in rows] == tokens
        told = (lab.home.imported_suites / folder.name / "cases.jsonl").read_text()
        assert ("Write to [email]." in told and "tool:get_weather" in told) == is_openai


def _weather() -> list[Any]:
    called = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [called]}
    body = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m-2026"}
    body["choices"] = [{"index": 0, "finish_reason": "tool_calls", "message": message}]
    body["usage"] = {"prompt_tokens": 40, "completion_tokens": 9, "total_tokens": 49}
    return [Says("Paris"), Says("Madrid"), Raw(json.dumps(body).encode()), Says("3 degrees, rain"), Status(500)]


def _capital(body: Any) -> str:
    return "Paris" if "France" in json.dumps(body["messages"][-1]) else "Madrid"


def test_the_sdk_reads_scores_as_events_and_the_schema_of_every_eval_ever_holds(
    small: Lab, tools: Path, tmp_path: Path
) -> None:
    small.evaluate(publish=True)
    chosen = ("--suite", "small", "--model-version", "puppet", "--output", str(tmp_path))
    for form, *options in (("otlp",), ("every-eval-ever", "--organization", "us")):
        assert small.cli("export", form, *chosen, *options).code == 0
    python = real_tools.venv(tools, "otel", "opentelemetry-exporter-otlp-proto-http")
    (tmp_path / "read.py").write_text(_READ)
    real_tools.run(tmp_path, python, "read.py")

    wheel = ("--no-deps", "--python-version", "3.12", "--only-binary", ":all:", "every-eval-ever")
    real_tools.run(tmp_path, python, "-m", "pip", "download", "--quiet", *wheel)
    (packed,) = tmp_path.glob("every_eval_ever-*.whl")
    (record,) = tmp_path.glob("data/**/*[!s].json")
    (answers,) = tmp_path.glob("data/**/*_samples.jsonl")
    with zipfile.ZipFile(packed) as files:
        schemas = {kind: json.loads(files.read(f"every_eval_ever/schemas/{kind}.schema.json")) for kind in _RECORDS}
    told = {"eval": [record.read_text()], "instance_level_eval": answers.read_text().splitlines()}
    for kind, texts in told.items():
        for text in texts:
            assert not [error.message for error in Draft7Validator(schemas[kind]).iter_errors(json.loads(text))]
