"""Reads samples of lm-evaluation-harness (`--log_samples`): a document becomes a turn, a repeat our sample.

Sources: lm_eval/loggers/evaluation_tracker.py of EleutherAI/lm-evaluation-harness, and the output of lm_eval 0.4.13.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.operations.recorded.entries import Entry
from eval_pipeline_plugins.foreign_entries import json_objects, read_json

_NAME = re.compile(r"samples_(?P<task>.+)_(?P<moment>\d{4}-\d\d-\d\dT[\d.\-:]+)\.jsonl")


def read_lm_eval(source: Path) -> Iterator[Entry]:
    """Yields the answers; model and date are taken from the `results_….json` beside the file.

    A document appears once per filter. Its answers are those before filtering, so only the first appearance is read.

    Raises:
        InputError: the file does not have that format, or its task has log-likelihoods instead of answers.
    """
    of_all = _of_all(source)
    first_filter: Json = None
    for _, line, raw in json_objects(source):
        if not isinstance(raw, dict) or "resps" not in raw or "doc" not in raw:
            raise _wrong(source, line, "", "is no sample of lm-evaluation-harness: it lacks 'doc' or 'resps'")
        first_filter = raw.get("filter") if first_filter is None else first_filter
        if raw.get("filter") != first_filter:
            continue
        asked = {**of_all, **_asked(raw.get("arguments"))}
        for sample, text in enumerate(_answers(source, line, raw["resps"])):
            yield Entry(line, f"doc {raw.get('doc_id')}", {**asked, "sample": sample, "response": text}, raw)


def _answers(source: Path, line: int | None, responses: Any) -> list[str]:
    """Returns the answers of a document: one list per request with one entry per repeat; documents have one request."""
    told = responses if isinstance(responses, list) else []
    if len(told) == 1 and isinstance(told[0], list) and told[0] and all(isinstance(text, str) for text in told[0]):
        return told[0]
    what = "expected one list of texts; a task of log-likelihoods (multiple choice) has no answers to read"
    raise _wrong(source, line, "resps", what)


def _asked(arguments: Any) -> dict[str, Json]:
    """Returns prompt and sampling from `{"gen_args_0":

    {"arg_0": prompt, "arg_1": settings}}` or, in older files, pairs.
    """
    first = next(iter(arguments.values()), None) if isinstance(arguments, dict) else None
    if isinstance(arguments, list) and arguments:
        first = arguments[0]
    pair = list(first.values()) if isinstance(first, dict) else first if isinstance(first, list) else []
    prompt = pair[0] if pair and isinstance(pair[0], str) else None
    sampling = pair[1] if len(pair) > 1 and isinstance(pair[1], dict) else None
    return {name: value for name, value in (("prompt", prompt), ("sampling", sampling)) if value}


def _of_all(source: Path) -> dict[str, Json]:
    """Returns what the results file beside the samples says; empty if it does not exist."""
    named = _NAME.fullmatch(source.name)
    beside = source.with_name(f"results_{named['moment']}.json") if named else None
    told: dict[str, Json] = {"tool": "lm_eval"}
    if named is None or beside is None or not beside.is_file():
        return told
    raw = read_json(beside)
    results: Mapping[str, Any] = raw if isinstance(raw, dict) else {}
    version = results.get("lm_eval_version")
    told["tool"] = f"lm_eval {version}" if version else "lm_eval"
    if name := results.get("model_name") or results.get("model_source"):
        told["model"] = str(name)
    if isinstance(moment := results.get("date"), int | float):
        told["asked_on"] = datetime.fromtimestamp(moment, UTC).date().isoformat()
    versions = results.get("versions")
    of_task = versions.get(named["task"]) if isinstance(versions, dict) else None
    told["prompt_version"] = named["task"] if of_task is None else f"{named['task']}, version {of_task}"
    return told


def _wrong(source: Path, line: int | None, field: str, message: str) -> InputError:
    return InputError([Problem(str(source), line, field, message)])
