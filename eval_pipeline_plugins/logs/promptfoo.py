"""Reads results of promptfoo (`promptfoo eval --output results.json` or `.jsonl`): a result becomes an answer.

Sources: https://www.promptfoo.dev/docs/configuration/outputs/, and the output of promptfoo 0.121.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.operations.recorded.entries import Entry, LoggedTask
from eval_pipeline_plugins.foreign_entries import json_objects, read_json
from eval_pipeline_plugins.logs.texts import expected_answers, question_text

SAMPLING: tuple[str, ...] = (
    "temperature",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "maxOutputTokens",
    "top_p",
    "topP",
)
SAMPLING += ("top_k", "topK", "seed", "stop", "presence_penalty", "frequency_penalty", "reasoning_effort")
"""The settings that are kept; a provider's other settings may include keys and addresses."""
_LONGEST_LABEL = 80
QUESTIONS = ("question", "input", "query", "user_input", "problem", "task")
"""Names of variables that people give to a question."""
EXPECTED = ("expected", "expected_output", "expected_answer", "answer", "reference", "ground_truth", "target", "gold")
_EQUALS = {"equals", "factuality", "model-graded-factuality", "similar", "levenshtein", "rouge-n", "bleu", "answer"}
_CONTAINS = {"contains", "icontains", "contains-any", "icontains-any"}
_ERROR = 2
"""Reason of a failure that is no assertion's (`ResultFailureReason.ERROR`)."""


def read_promptfoo(source: Path) -> Iterator[Entry]:
    """Yields the results.

    Raises:
        InputError: the file is not JSON, or not from promptfoo.
    """
    whole: Mapping[str, Any] = {}
    if source.suffix == ".jsonl":
        results = [(line, raw) for _, line, raw in json_objects(source)]
    else:
        whole = _mapping(read_json(source))
        inner = whole.get("results")
        # promptfoo's own `Eval` objects have the list one level higher than the output of `--output`.
        listed = inner.get("results") if isinstance(inner, dict) else inner
        if not isinstance(listed, list):
            raise _wrong(
                source, None, "results.results", "expected a list of results, as promptfoo eval --output writes"
            )
        results = [(None, raw) for raw in listed]
    for place, (line, raw) in enumerate(results):
        if not isinstance(raw, dict) or not isinstance(raw.get("prompt"), dict) or "provider" not in raw:
            raise _wrong(source, line, f"results.{place}", "is no result of promptfoo: it lacks 'prompt' or 'provider'")
        yield _entry(place, line, raw, whole)


def _entry(place: int, line: int | None, raw: Mapping[str, Any], whole: Mapping[str, Any]) -> Entry:
    response, provider = _mapping(raw.get("response")), raw["provider"]
    output = response.get("output")
    given: dict[str, Json] = {
        "model": provider.get("id") if isinstance(provider, dict) else provider,
        "prompt": _text(raw["prompt"].get("raw")),
        "prompt_version": _prompt_name(raw),
        "sampling": _sampling(provider, whole) or None,
        "asked_on": (_text(_mapping(whole.get("results")).get("timestamp")) or "")[:10] or None,
        "tool": " ".join(filter(None, ["promptfoo", _text(_mapping(whole.get("metadata")).get("promptfooVersion"))])),
        "stop_reason": _text(response.get("finishReason")),
        **_spent(raw, response),
    }
    if output is None or response.get("error"):
        # A failed assertion is an `error` of the result, too, although there is an answer.
        given["error"] = _text(response.get("error") or raw.get("error")) or "no output"
    else:
        given["response"] = output if isinstance(output, str | dict | list) else json.dumps(output)
    given |= _judged(raw)
    told = {name: value for name, value in given.items() if value is not None}
    return Entry(line, f"results.{place} (test {raw.get('testIdx')})", told, raw, task=_task(raw))


def _judged(raw: Mapping[str, Any]) -> dict[str, Json]:
    """Returns the verdict of the assertions, and the score of each metric that they name."""
    asserted = _mapping(raw.get("testCase")).get("assert") or _mapping(raw.get("gradingResult")).get("componentResults")
    scores = {str(name): value for name, value in _mapping(raw.get("namedScores")).items()}
    if asserted and isinstance(raw.get("score"), int | float):
        scores["score"] = raw["score"]
    judged = bool(asserted) and isinstance(raw.get("success"), bool) and raw.get("failureReason") != _ERROR
    return {"source_scores": scores or None, "source_correct": raw["success"] if judged else None}


def _task(raw: Mapping[str, Any]) -> LoggedTask:
    """Returns what was asked: the variable that is named like a question, else the prompt.

    What is right is what an assertion on equality, or one that compares with a reference, says; or such a variable; or
    else what the only assertion on contents wants.
    """
    variables, test = _mapping(raw.get("vars")), _mapping(raw.get("testCase"))
    asked = next((variables[name] for name in QUESTIONS if variables.get(name)), None)
    checks = [_mapping(one) for one in test.get("assert") or ()]
    expected = [one["value"] for one in checks if one.get("type") in _EQUALS and one.get("value") not in (None, "")]
    expected += [variables[name] for name in EXPECTED if variables.get(name)]
    parts = [one["value"] for one in checks if one.get("type") in _CONTAINS and one.get("value") not in (None, "", [])]
    expected += parts if len(parts) == 1 else []
    prompt = question_text(_mapping(raw.get("prompt")).get("raw"))
    described = _text(test.get("description")) or ""
    numbered = raw.get("testIdx")
    name = described or ("" if numbered is None else f"test-{numbered}")
    right = expected_answers(expected[0]) if expected else ()
    return LoggedTask(name, prompt if asked is None else question_text(asked), right)


def _spent(raw: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Json]:
    usage = _mapping(response.get("tokenUsage"))
    told: dict[str, Json] = {
        "input_tokens": usage.get("prompt"),
        "output_tokens": usage.get("completion"),
        "usd": response.get("cost"),
    }
    # Answers from promptfoo's own cache took no time, which says nothing about the model.
    return told if response.get("cached") else told | {"latency_ms": raw.get("latencyMs")}


def _prompt_name(raw: Mapping[str, Any]) -> str | None:
    """Returns the prompt's label if it is not its text, else its id."""
    label = _text(raw["prompt"].get("label"))
    if label and len(label) <= _LONGEST_LABEL and "{{" not in label and label != raw["prompt"].get("raw"):
        return label
    return (_text(raw.get("promptId")) or "")[:12] or None


def _sampling(provider: Any, whole: Mapping[str, Any]) -> dict[str, Json]:
    """Returns the provider's settings from the configuration included in the results."""
    names = {provider.get("id"), provider.get("label")} if isinstance(provider, dict) else {provider}
    configured = _mapping(whole.get("config")).get("providers")
    for entry in configured if isinstance(configured, list) else []:
        if isinstance(entry, dict) and {entry.get("id"), entry.get("label")} & (names - {None}):
            config = _mapping(entry.get("config"))
            return {name: config[name] for name in SAMPLING if name in config}
    return {}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return None if value is None or value == "" else value if isinstance(value, str) else json.dumps(value)


def _wrong(source: Path, line: int | None, field: str, message: str) -> InputError:
    return InputError([Problem(str(source), line, field, message)])
