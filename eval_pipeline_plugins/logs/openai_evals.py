"""Reads the log of OpenAI's evals (`oaieval --record_path`): JSON Lines of a spec and events, joined by sample.

Source: `RunSpec` and `RecorderBase` of openai/evals 3.0.1 (evals/base.py, evals/record.py).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.operations.recorded.entries import Entry, LoggedTask
from eval_pipeline_plugins.foreign_entries import json_objects
from eval_pipeline_plugins.logs.texts import (
    day_of,
    expected_answers,
    is_right,
    prompt_text,
    question_text,
    said_text,
    told_only,
    verdict_of,
)


def read_openai_evals(source: Path) -> Iterator[Entry]:
    """Yields an answer for each sample, in the order of their first events.

    Raises:
        InputError: the file is not JSON Lines of such events, or has no sampling.
    """
    spec: Mapping[str, Any] = {}
    events: dict[str, list[Mapping[str, Any]]] = {}
    for _, line, raw in json_objects(source):
        if not isinstance(raw, dict) or not ({"spec", "final_report", "type"} & raw.keys()):
            raise InputError([Problem(str(source), line, "", "is no event of OpenAI's evals: it lacks 'type'")])
        if isinstance(raw.get("spec"), dict):
            spec = raw["spec"]
        elif raw.get("sample_id") is not None and isinstance(raw.get("data"), dict):
            events.setdefault(str(raw["sample_id"]), []).append(raw)
    found = [_entry(sample, told, spec) for sample, told in events.items()]
    if not any(found):
        raise InputError([Problem(str(source), None, "", "has no event 'sampling', so that there is no answer")])
    yield from (entry for entry in found if entry is not None)


def _entry(sample: str, events: list[Mapping[str, Any]], spec: Mapping[str, Any]) -> Entry | None:
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for event in events:
        by_kind.setdefault(str(event["type"]), []).append(event["data"])
    asked, errors = by_kind.get("sampling"), by_kind.get("error")
    if not asked and not errors:
        return None
    first, match = (asked or [{}])[-1], (by_kind.get("match") or [{}])[-1]
    scores: dict[str, Json] = dict(
        item for data in by_kind.get("metrics", ()) for item in data.items() if isinstance(item[1], int | float)
    )
    sampled = first.get("sampled")
    sampled = sampled[0] if isinstance(sampled, list) and len(sampled) == 1 else sampled
    correct = is_right(match.get("correct"))
    given: dict[str, Any] = {
        "model": ", ".join(map(str, spec.get("completion_fns") or ())) or None,
        "tool": "openai evals",
        "asked_on": day_of(events[0].get("created_at")) or day_of(spec.get("created_at")),
        "prompt": prompt_text(first.get("prompt")) or None,
        "source_scores": scores or None,
        "source_correct": verdict_of(scores) if correct is None else correct,
    }
    if asked:
        given["response"] = said_text(sampled)
    else:
        given["error"] = str(errors[0].get("message") if errors else "")
    raw = (by_kind.get("raw_sample") or [{}])[0]
    ideal = match.get("expected", raw.get("ideal"))
    task = LoggedTask(
        sample,
        question_text(raw.get("input") or first.get("prompt")),
        expected_answers(ideal),
        (),
        str(spec.get("eval_name") or ""),
    )
    return Entry(None, f"sample {sample}", told_only(given), {"id": sample, "events": by_kind}, task=task)
