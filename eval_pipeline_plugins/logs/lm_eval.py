"""Reads samples of lm-evaluation-harness (`--log_samples`): a document becomes a turn, a repeat our sample.

Sources: lm_eval/loggers/evaluation_tracker.py of EleutherAI/lm-evaluation-harness, and the output of lm_eval 0.4.13.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.operations.recorded.entries import Entry, LoggedTask
from eval_pipeline_plugins.foreign_entries import json_objects, read_json
from eval_pipeline_plugins.logs.texts import expected_answers, is_right, verdict_of

QUESTIONS = ("question", "query", "problem", "input", "prompt", "sentence", "text", "ctx")
"""Fields of a document that tasks give to a question."""
_NAME = re.compile(r"samples_(?P<task>.+)_(?P<moment>\d{4}-\d\d-\d\dT[\d.\-:]+)\.jsonl")


def read_lm_eval(source: Path) -> Iterator[Entry]:
    """Yields the answers; model and date are taken from the `results_….json` beside the file.

    A document appears once per filter. Its answers are those before filtering, so only the first appearance is read.
    Where likelihoods of given answers are compared, the answer is the likeliest of them.

    Raises:
        InputError: the file does not have that format.
    """
    of_all = _of_all(source)
    first_filter: Json = None
    named = _NAME.fullmatch(source.name)
    group = named["task"] if named else ""
    for _, line, raw in json_objects(source):
        if not isinstance(raw, dict) or "resps" not in raw or "doc" not in raw:
            raise _wrong(source, line, "", "is no sample of lm-evaluation-harness: it lacks 'doc' or 'resps'")
        first_filter = raw.get("filter") if first_filter is None else first_filter
        if raw.get("filter") != first_filter:
            continue
        choices = _choices(raw.get("arguments"))
        answers = _answers(source, line, raw["resps"], choices)
        # The metrics of several repeats are of all of them together.
        asked = {**of_all, **_asked(raw.get("arguments"))} | (_judged(raw) if len(answers) == 1 else {})
        task = replace(_task(raw, choices if len(choices) > 1 else [], asked.get("prompt")), group=group)
        for sample, text in enumerate(answers):
            given = {**asked, "sample": sample, "response": text}
            yield Entry(line, f"doc {raw.get('doc_id')}", given, raw, task=task)


def _answers(source: Path, line: int | None, responses: Any, choices: Sequence[str]) -> list[str]:
    """Returns the answers of a document: one list per request with one entry per repeat; documents have one request.

    A document with a request per choice has pairs of a log-likelihood and whether decoding greedily gives that choice.
    """
    told = responses if isinstance(responses, list) else []
    if len(told) == 1 and isinstance(told[0], list) and told[0] and all(isinstance(text, str) for text in told[0]):
        return told[0]
    likely = [_likelihood(one) for one in told]
    if len(likely) == len(choices) > 1 and None not in likely:
        return [choices[likely.index(max(value for value in likely if value is not None))]]
    raise _wrong(source, line, "resps", "expected one list of texts, or a log-likelihood for each choice")


def _likelihood(told: Any) -> float | None:
    """Returns the log-likelihood in `[[-1.2, false]]`, whose number may be a text."""
    while isinstance(told, list) and told and isinstance(told[0], list):
        told = told[0]
    try:
        return float(told[0])
    except (TypeError, ValueError, IndexError, KeyError):
        return None


def _choices(arguments: Any) -> list[str]:
    """Returns the continuations of a document's requests; of one that generates text, none."""
    requests = list(arguments.values()) if isinstance(arguments, dict) else arguments
    pairs = [list(one.values()) if isinstance(one, dict) else one for one in requests or ()]
    told = [pair[1] for pair in pairs if isinstance(pair, list) and len(pair) > 1]
    return [text.strip() for text in told] if all(isinstance(text, str) for text in told) else []


def _judged(raw: Mapping[str, Any]) -> dict[str, Json]:
    """Returns the values of the task's metrics that are numbers, and the verdict."""
    names = raw.get("metrics") or [name for name in ("exact_match", "acc", "acc_norm", "pass@1", "f1") if name in raw]
    scores: dict[str, Json] = {str(name): raw[name] for name in names if isinstance(raw.get(name), int | float | bool)}
    correct = is_right(scores["acc"]) if "acc" in scores else verdict_of(scores)
    return {
        name: value
        for name, value in (("source_scores", scores), ("source_correct", correct))
        if value not in ({}, None)
    }


def _task(raw: Mapping[str, Any], choices: Sequence[str], prompt: Json) -> LoggedTask:
    doc = raw["doc"] if isinstance(raw["doc"], dict) else {}
    asked = next((doc[name] for name in QUESTIONS if isinstance(doc.get(name), str) and doc[name]), None)
    target = raw.get("target")
    question = str(asked or prompt or "")
    expected = expected_answers(target)
    if choices:
        question += "\n" + "".join(f"\n- {choice}" for choice in choices)
        number = int(target) if isinstance(target, int) or (isinstance(target, str) and target.isdecimal()) else None
        if number is not None and number < len(choices) and str(target) not in choices:
            expected = (choices[number],)
    named = next((doc[name] for name in ("id", "case_id", "question_id", "qid", "task_id") if name in doc), None)
    told = named if isinstance(named, str | int) else raw.get("doc_id")
    return LoggedTask("" if told is None else str(told), question, expected)


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
