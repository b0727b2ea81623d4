"""Logs that the newest packages of peers write, imported and scored; and what we export, read by the packages it is for.

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
from eval_pipeline_tests.fakes.openai_server import OpenAIServer
from eval_pipeline_tests.support import Lab

pytestmark = pytest.mark.soak

OURS = [True, False, False, True]
"""Whether the track text counts each answer as right: case does not matter, further words do."""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(os.environ.get("EVAL_TOOLS") or tmp_path_factory.mktemp("tools"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize("name", real_tools.TOOLS)
def test_a_log_of_a_real_tool_becomes_a_suite_with_answers_and_both_verdicts(
    lab: Lab, tools: Path, tmp_path: Path, name: str
) -> None:
    if name == "promptfoo" and not shutil.which("npm"):
        pytest.skip("needs npm")
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
    # Ids are hexadecimal in OTLP and base64 in JSON of protobuf.
    (tmp_path / "read.py").write_text(
        "import base64, glob, json, re\nfrom google.protobuf.json_format import Parse\n"
        "from opentelemetry.proto.logs.v1.logs_pb2 import LogsData\n"
        "from opentelemetry.proto.trace.v1.trace_pb2 import TracesData\n"
        "from opentelemetry.trace import SpanContext\n"
        'ids = re.compile(r\'"(traceId|spanId)":"([0-9a-f]+)"\')\n'
        "def read(ending, form):\n"
        "    for line in open(glob.glob('*' + ending)[0]):\n"
        '        plain = ids.sub(lambda m: f\'"{m[1]}":"{base64.b64encode(bytes.fromhex(m[2])).decode()}"\', line)\n'
        "        yield Parse(plain, form())\n"
        "events = [e for d in read('.events.jsonl', LogsData) for r in d.resource_logs for s in r.scope_logs for e in s.log_records]\n"
        "spans = [e for d in read('.spans.jsonl', TracesData) for r in d.resource_spans for s in r.scope_spans for e in s.spans]\n"
        "own = {(s.trace_id, s.span_id) for s in spans}\n"
        "assert all(SpanContext(int.from_bytes(t), int.from_bytes(s), False).is_valid for t, s in own)\n"
        "assert {(e.trace_id, e.span_id) for e in events} == own\n"
        "print(json.dumps([len(events), sorted({e.event_name for e in events})]))\n"
    )
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


_RECORDS = ("eval", "instance_level_eval")
