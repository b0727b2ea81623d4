"""Reads the answers of StatGPT's evaluation jobs: one artefact, a folder of them (`jobs/`), or JSON Lines of them."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.operations.recorded.entries import Entry
from eval_pipeline_plugins.foreign_entries import json_objects, read_json
from eval_pipeline_plugins.tracks.sdmx.responses.statgpt_answers import selections, value_at

_COMMANDS = re.compile(r"^(?:!\w+\s+)+")
_HINT = re.compile(r"\s+Research thoroughly\.$")
_WRONG = 400
"""HTTP status codes from here on are failures."""


def read_statgpt_answers(source: Path) -> Iterator[Entry]:
    """Yields the responses of every job, each as the answer to one turn.

    A job whose id the suite does not know is assigned by its first question, without commands such as
    `!skip_data_query_summarization` and without the hint `Research thoroughly.`

    Raises:
        InputError: a file is not JSON, or not an artefact; or a folder has none.
    """
    jobs: list[tuple[int | None, str, Any]]
    if source.is_dir():
        files = sorted(source.glob("*.json"))
        if not files:
            raise InputError([Problem(str(source), None, "", "expected artefacts of jobs (.json), found none")])
        jobs = [(None, file.name, read_json(file)) for file in files]
    elif source.suffix == ".jsonl":
        jobs = [(line, "", raw) for _, line, raw in json_objects(source)]
    else:
        jobs = [(None, "", read_json(source))]
    for line, name, job in jobs:
        if not isinstance(job, dict) or not isinstance(job.get("responses"), list):
            place = f"{source}/{name}" if name else str(source)
            raise InputError([Problem(place, line, "responses", "is no artefact of a StatGPT job: expected a list")])
        yield from _entries(line, name, job)


def _entries(line: int | None, name: str, job: Mapping[str, Any]) -> Iterator[Entry]:
    case = job.get("test_case") if isinstance(job.get("test_case"), dict) else {}
    asked = [turn for turn in value_at(case, "conversation") or [] if value_at(turn, "role") == "user"]
    first = str(value_at(asked, 0, "content") or "")
    plain = _COMMANDS.sub("", first)
    found = {
        "id": value_at(case, "id"),
        "metadata": {"id": value_at(case, "name")},
        "questions": list(dict.fromkeys([first, plain, _HINT.sub("", plain)])),
    }
    for index, (response, selected) in enumerate(zip(job["responses"], selections(job["responses"]), strict=True)):
        place = " ".join(filter(None, [name, f"response {index}"]))
        yield Entry(line, place, _given(response, selected), {**found, "turn_index": index})


def _given(response: Any, selected: Mapping[str, Json] | None) -> dict[str, Json]:
    told: dict[str, Json] = {
        "latency_ms": 1000 * seconds if (seconds := value_at(response, "response_time")) else None,
        "input_tokens": value_at(response, "data", "usage", "prompt_tokens"),
        "output_tokens": value_at(response, "data", "usage", "completion_tokens"),
        "model": value_at(response, "data", "model"),
        "asked_on": str(value_at(response, "start_time_utc") or "")[:10] or None,
        "tool": "StatGPT",
    }
    failure = value_at(response, "exception_info")
    status = value_at(response, "status_code")
    if failure or selected is None or (isinstance(status, int) and status >= _WRONG):
        why = failure if isinstance(failure, str) else json.dumps(failure) if failure else f"status {status}, no state"
        told["error"] = why
    else:
        told["response"] = dict(selected)
    return {field: value for field, value in told.items() if value is not None}
