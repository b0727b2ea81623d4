"""Reads `scenario_state.json` of HELM, with the verdicts of `per_instance_stats.json` beside it.

Source: `ScenarioState`, `RequestState`, `Instance` and `PerInstanceStats` of crfm-helm 0.5.16.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.operations.recorded.entries import Entry, LoggedTask
from eval_pipeline_plugins.foreign_entries import read_json
from eval_pipeline_plugins.logs.texts import day_of, is_right, told_only

VERDICTS = ("quasi_exact_match", "exact_match", "final_number_exact_match", "math_equiv")
"""Statistics that are verdicts, the most lenient first, as HELM's own tables have it."""
_QUALITY = re.compile("match|f1|rouge|bleu|equiv|correct|score|accuracy")
"""Names of statistics that say how good an answer is; others count tokens and bytes."""
_SAMPLING = ("temperature", "max_tokens", "top_p", "top_k_per_token", "presence_penalty", "frequency_penalty")


def read_helm(source: Path) -> Iterator[Entry]:
    """Yields an answer for each request to generate text; perturbed instances are left out.

    Raises:
        InputError: the file does not have that format, or its requests only compare likelihoods.
    """
    raw = read_json(source)
    states = raw.get("request_states") if isinstance(raw, dict) else None
    if not isinstance(raw, dict) or not isinstance(states, list):
        raise InputError([Problem(str(source), None, "request_states", "expected a list, as HELM writes")])
    spec = _mapping(raw.get("adapter_spec"))
    beside = source.with_name("per_instance_stats.json")
    stats = _stats(read_json(beside)) if beside.is_file() else {}
    count = 0
    for place, state in enumerate(states):
        instance = _mapping(_mapping(state).get("instance"))
        if state.get("reference_index") is None and not instance.get("perturbation"):
            count += 1
            yield _entry(place, state, instance, spec, stats)
    if not count:
        what = "its requests compare likelihoods of given answers, so that there is no answer to read"
        raise InputError([Problem(str(source), None, "request_states", what)])


def _entry(
    place: int, state: Mapping[str, Any], instance: Mapping[str, Any], spec: Mapping[str, Any], stats: Mapping[Any, Any]
) -> Entry:
    request, result = _mapping(state.get("request")), _mapping(state.get("result"))
    trial = state.get("train_trial_index") or 0
    scores = stats.get((instance.get("id"), trial), {})
    right = [value for name in VERDICTS if (value := is_right(scores.get(name))) is not None]
    seconds = result.get("request_time")
    completions = result.get("completions") or [{}]
    given: dict[str, Any] = {
        "model": spec.get("model") or request.get("model"),
        "prompt": request.get("prompt") or None,
        "sampling": {name: request[name] for name in _SAMPLING if request.get(name) is not None},
        "tool": "helm",
        "sample": trial,
        "asked_on": day_of(result.get("request_datetime")),
        "latency_ms": None if seconds is None else 1000 * seconds,
        "stop_reason": _mapping(_mapping(completions[0]).get("finish_reason")).get("reason"),
        "source_scores": scores or None,
        "source_correct": right[0] if right else None,
    }
    if result.get("success") is False:
        given["error"] = result.get("error") or "the request failed"
    else:
        given["response"] = str(_mapping(completions[0]).get("text", ""))
    references = instance.get("references") or []
    expected: list[Json] = [
        _mapping(one.get("output")).get("text") for one in references if "correct" in (one.get("tags") or ())
    ]
    question, mapping = str(_mapping(instance.get("input")).get("text", "")), _mapping(state.get("output_mapping"))
    if mapping:  # a choice among letters
        question += "\n" + "".join(f"\n{letter}. {text}" for letter, text in mapping.items())
        expected = [letter for letter, text in mapping.items() if text in expected]
    task = LoggedTask(str(instance.get("id") or ""), question, tuple(one for one in expected if one))
    return Entry(None, f"request_states.{place}", told_only(given), {"id": instance.get("id"), **state}, task=task)


def _stats(raw: Json) -> dict[Any, dict[str, Json]]:
    """Returns the means of an instance's statistics by their names, by instance and trial."""
    found: dict[Any, dict[str, Json]] = {}
    for one in raw if isinstance(raw, list) else ():
        told = _mapping(one)
        if told.get("perturbation"):
            continue
        means = {
            _mapping(stat.get("name")).get("name"): stat.get("mean", stat.get("sum"))
            for stat in told.get("stats") or ()
            if not _mapping(stat.get("name")).get("perturbation")
        }
        found.setdefault((told.get("instance_id"), told.get("train_trial_index") or 0), {}).update(
            {name: value for name, value in means.items() if isinstance(name, str) and _QUALITY.search(name)}
        )
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
