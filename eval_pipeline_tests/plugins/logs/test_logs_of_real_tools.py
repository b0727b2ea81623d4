"""Logs that the newest packages of peers write, imported and scored; and our exports, read by whom they are for.

`EVAL_TOOLS` names a folder for their environments, which are then installed once.
"""

import json
import os
import shutil
import zipfile
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from eval_pipeline_tests.fakes import real_tools
from eval_pipeline_tests.fakes.openai_server import USAGE, OpenAIServer
from eval_pipeline_tests.support import Lab

pytestmark = pytest.mark.soak

OURS = [True, False, False, True]
"""Whether the track text counts each answer as right: case does not matter, further words do."""

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
