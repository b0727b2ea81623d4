"""Reads logs that have one record for each answer: where each tool writes what we need is a table (`SHAPES`).

Sources: `TestRun` of deepeval 4.3, `log_table` of mlflow 3.18, `ExperimentRun` of arize-phoenix-client 3.5 and the
attributes of OpenInference; https://www.braintrust.dev/docs/annotate/export and
https://langfuse.com/docs/api-and-data-platform/features/blob-storage-export-fields
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.entries import read_entries
from eval_pipeline.core.reading.users_tables import Unreadable
from eval_pipeline.operations.recorded.entries import Entry, LoggedTask
from eval_pipeline.operations.recorded.mapping import NO_ANSWER, is_there, value_at
from eval_pipeline_plugins.logs.texts import (
    day_of,
    expected_answers,
    is_right,
    opened,
    question_text,
    said_text,
    told_only,
    verdict_of,
)

Paths = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecordShape:
    """Where a tool's records have what we need: paths, of which the first that is there counts.

    Attributes:
        tool: the tool's name, as the origin of the answers.
        records: where the list of records is in a document; empty if the entries of the file are the records.
        scores: objects of scores by name, or lists of objects with `name` and `score`, `label` or `success`.
        score_suffixes: endings of columns that are scores.
        only: path → values of the records that are answers; others are steps on the way.
        seconds: whether `latency` is in seconds and not in milliseconds.
    """

    tool: str
    question: Paths
    response: Paths
    expected: Paths = ()
    id: Paths = ()
    model: Paths = ()
    records: Paths = ()
    correct: Paths = ()
    scores: Paths = ()
    score_suffixes: Paths = ()
    error: Paths = ("error",)
    prompt: Paths = ()
    asked_on: Paths = ()
    tags: Paths = ("tags",)
    input_tokens: Paths = ()
    output_tokens: Paths = ()
    usd: Paths = ()
    latency: Paths = ()
    sample: Paths = ()
    trace: Paths = ()
    span: Paths = ()
    seconds: bool = False
    only: Mapping[str, Sequence[Json]] = field(default_factory=dict)


DEEPEVAL = RecordShape(
    "deepeval",
    question=("input",),
    response=("actualOutput", "actual_output"),
    expected=("expectedOutput", "expected_output"),
    id=("name",),
    records=("testCases", "testRunData.testCases", "test_cases"),
    model=("/hyperparameters.model", "/testRunData.hyperparameters.model", "metadata.model"),
    correct=("success",),
    scores=("metricsData", "metrics_data"),
    usd=("tokenCost",),
    input_tokens=("inputTokenCount",),
    output_tokens=("outputTokenCount",),
    latency=("completionTime",),
    seconds=True,
)
BRAINTRUST = RecordShape(
    "braintrust",
    question=("input",),
    response=("output",),
    expected=("expected",),
    id=("dataset_record_id", "id"),
    model=("metadata.model",),
    scores=("scores",),
    asked_on=("created",),
    input_tokens=("metrics.prompt_tokens",),
    output_tokens=("metrics.completion_tokens",),
    usd=("metrics.estimated_cost",),
    latency=("metrics.duration",),
    seconds=True,
    only={"span_attributes.type": ("eval", "task", None), "is_root": (True, None)},
)
LANGFUSE = RecordShape(
    "langfuse",
    question=("input",),
    response=("output",),
    expected=("expectedOutput", "expected_output", "metadata.expected_output", "metadata.expectedOutput"),
    id=("datasetItemId", "dataset_item_id", "traceId", "trace_id", "id"),
    model=("model", "provided_model_name", "providedModelName", "observations.0.model", "metadata.model"),
    scores=("scores",),
    error=("statusMessage", "status_message"),
    asked_on=("startTime", "start_time", "timestamp"),
    input_tokens=("usageDetails.input", "usage_details.input", "usage.input", "promptTokens", "inputUsage"),
    output_tokens=("usageDetails.output", "usage_details.output", "usage.output", "completionTokens", "outputUsage"),
    usd=("calculatedTotalCost", "total_cost", "totalCost", "costDetails.total", "cost_details.total"),
    latency=("latency",),
    trace=("traceId", "trace_id"),
    span=("id",),
    seconds=True,
    only={"type": ("GENERATION", "AGENT", None)},
)
PHOENIX = RecordShape(
    "phoenix",
    question=("input", "attributes.input.value", "attributes.llm.input_messages"),
    response=("output", "attributes.output.value", "attributes.llm.output_messages"),
    expected=("reference_output", "expected", "metadata.expected"),
    id=("example_id", "dataset_example_id", "context.trace_id", "context.span_id"),
    model=("attributes.llm.model_name", "metadata.model"),
    scores=("annotations", "evaluations"),
    asked_on=("start_time",),
    error=("error", "status_message"),
    input_tokens=("attributes.llm.token_count.prompt",),
    output_tokens=("attributes.llm.token_count.completion",),
    usd=("attributes.llm.cost.total",),
    latency=("latency_ms",),
    trace=("context.trace_id", "trace_id"),
    span=("context.span_id",),
    only={"span_kind": ("LLM", None)},
)
MLFLOW = RecordShape(
    "mlflow",
    question=("inputs", "request", "question", "input", "prompt"),
    response=("outputs", "response", "prediction", "predictions", "output"),
    expected=("ground_truth", "targets", "target", "expected_response/value", "expectations", "expected_response"),
    id=("id", "request_id", "trace_id"),
    model=("model",),
    score_suffixes=("/score", "/value"),
    latency=("latency", "execution_duration", "execution_time_ms"),
)
ROWS = RecordShape(
    "unknown",
    question=("question", "prompt", "input", "query", "instruction", "problem", "doc.question", "user_input", "task"),
    response=("response", "output", "prediction", "completion", "model_output", "model_answer", "generated", "actual"),
    expected=("expected", "expected_output", "ground_truth", "reference", "target", "gold", "answer", "label", "ideal"),
    id=("id", "case_id", "uid", "question_id", "task_id", "session_id", "doc_id", "index"),
    model=("model", "model_name", "generator"),
    correct=("correct", "is_correct", "passed", "success", "right", "pass"),
    scores=("scores",),
    error=("error",),
    asked_on=("asked_on", "timestamp", "created_at", "date"),
    input_tokens=("input_tokens", "prompt_tokens", "usage.prompt_tokens", "usage.input_tokens"),
    output_tokens=("output_tokens", "completion_tokens", "usage.completion_tokens", "usage.output_tokens"),
    usd=("usd", "cost_usd", "cost"),
    latency=("latency_ms",),
    sample=("sample", "epoch", "repeat"),
)
"""Files of anybody: the names that people give to such columns."""


def read_deepeval(source: Path) -> Iterator[Entry]:
    """Yields the test cases of a run of DeepEval."""
    return _read(source, DEEPEVAL)


def read_braintrust(source: Path) -> Iterator[Entry]:
    """Yields the root spans of an experiment of Braintrust."""
    return _read(source, BRAINTRUST)


def read_langfuse(source: Path) -> Iterator[Entry]:
    """Yields the traces or generations of an export of Langfuse."""
    return _read(source, LANGFUSE)


def read_phoenix(source: Path) -> Iterator[Entry]:
    """Yields the runs of an experiment, or the spans of models, of Phoenix."""
    return _read(source, PHOENIX)


def read_mlflow(source: Path) -> Iterator[Entry]:
    """Yields the rows of an evaluation table of MLflow."""
    return _read(source, MLFLOW)


def read_rows(source: Path) -> Iterator[Entry]:
    """Yields the rows of any table, list or JSON Lines file whose columns have usual names."""
    return _read(source, ROWS)


def _read(source: Path, shape: RecordShape) -> Iterator[Entry]:
    count = 0
    for line, place, raw, whole in _records(source, shape):
        if any(_first(raw, (path,)) not in values for path, values in shape.only.items()):
            continue
        count += 1
        yield _entry(line, place, raw, whole, shape)
    if not count:
        raise InputError([Problem(str(source), None, "", f"has no answer of {shape.tool}")])


def _records(
    source: Path, shape: RecordShape
) -> Iterator[tuple[int | None, str, Mapping[str, Json], Mapping[str, Json]]]:
    """Yields line, place, record and the document that it is in."""
    for found in read_entries(source, str(source), (), else_lines=True):
        if isinstance(found, Problem):
            raise InputError([found])
        if not isinstance(found.raw, Mapping):
            raise InputError([Problem(found.file, found.line, "", "expected an object with fields")])
        whole = {name: None if isinstance(cell, Unreadable) else cell for name, cell in found.raw.items()}
        columns, data = whole.get("columns"), whole.get("data")
        if isinstance(columns, list) and isinstance(data, list):
            named = [str(name) for name in columns]
            for count, row in enumerate(data):
                yield None, f"data.{count}", dict(zip(named, row, strict=False)), whole
            continue
        listed = [value for path in shape.records if isinstance(value := value_at(whole, path), list)]
        if not listed:
            yield found.line, "", whole, {}
        for count, raw in enumerate(listed[0] if listed else ()):
            if isinstance(raw, Mapping):
                yield None, f"record {count}", raw, whole


def _entry(
    line: int | None, place: str, raw: Mapping[str, Json], whole: Mapping[str, Json], shape: RecordShape
) -> Entry:
    """Returns the entry of a record."""
    response, error = _first(raw, shape.response), _first(raw, shape.error)
    scores = _scores(raw, shape)
    correct = is_right(_first(raw, shape.correct))
    model, latency = _of_any(raw, whole, shape.model), _number(_first(raw, shape.latency))
    given: dict[str, Any] = {
        "model": None if model is None else said_text(model),
        "tool": shape.tool if shape is not ROWS else None,
        "asked_on": day_of(_first(raw, shape.asked_on)),
        "input_tokens": _whole(_first(raw, shape.input_tokens)),
        "output_tokens": _whole(_first(raw, shape.output_tokens)),
        "usd": _number(_first(raw, shape.usd)),
        "latency_ms": latency if latency is None or not shape.seconds else 1000 * latency,
        "sample": _whole(_first(raw, shape.sample)),
        "source_scores": scores or None,
        "source_correct": verdict_of(scores) if correct is None else correct,
        "trace_id": _hexadecimal(_first(raw, shape.trace), 32),
        "span_id": _hexadecimal(_first(raw, shape.span), 16),
    }
    if response is None:
        given["error"] = said_text(error) if error else NO_ANSWER
    else:
        given["response"] = said_text(response)
    asked = _first(raw, shape.question)
    tags = opened(_first(raw, shape.tags))
    task = LoggedTask(
        said_text(_first(raw, shape.id)),
        "" if asked is None else question_text(asked),
        expected_answers(_first(raw, shape.expected)),
        tuple(tag for tag in tags if isinstance(tag, str) and tag) if isinstance(tags, list) else (),
    )
    return Entry(line, place, told_only(given), raw, task=task)


def _first(raw: Mapping[str, Json], paths: Paths) -> Any:
    """Returns the first value that is there; texts that are JSON are looked into, as tables have objects as text."""
    for path in paths:
        if is_there(value := value_at(raw, path)):
            return value
        outer, _, inner = path.partition(".")
        if inner and isinstance(raw.get(outer), str) and is_there(value := value_at(opened(raw[outer]), inner)):
            return value
    return None


def _of_any(raw: Mapping[str, Json], whole: Mapping[str, Json], paths: Paths) -> Any:
    """Returns the first value; paths that begin with `/` are those of the document."""
    for path in paths:
        found = _first(whole, (path[1:],)) if path.startswith("/") else _first(raw, (path,))
        if found is not None:
            return found
    return None


def _scores(raw: Mapping[str, Json], shape: RecordShape) -> dict[str, Json]:
    """Returns what the tool's scorers gave, by their names."""
    told = opened(_first(raw, shape.scores))
    found: dict[str, Json] = {}
    if isinstance(told, Mapping):
        found |= {str(name): value for name, value in told.items() if not isinstance(value, Mapping | list)}
    for one in told if isinstance(told, list) else ():
        if isinstance(one, Mapping) and isinstance(one.get("name"), str):
            values = [one.get(name) for name in ("success", "score", "value", "label", "stringValue")]
            found[one["name"]] = next((value for value in values if value is not None), None)
    for suffix in shape.score_suffixes:
        found |= {
            name.removesuffix(suffix): value
            for name, value in raw.items()
            if name.endswith(suffix) and name not in shape.expected
        }
    return {name: value for name, value in found.items() if value is not None}


def _hexadecimal(value: Json, digits: int) -> str | None:
    """Returns the id of a trace or a span, which OpenTelemetry writes so; other ids are none."""
    return value if isinstance(value, str) and re.fullmatch(f"[0-9a-f]{{{digits}}}", value) else None


def _number(value: Json) -> float | None:
    try:
        return None if value is None or isinstance(value, bool) else max(0.0, float(value))
    except (TypeError, ValueError):
        return None


def _whole(value: Json) -> int | None:
    found = _number(value)
    return None if found is None or found != int(found) else int(found)
