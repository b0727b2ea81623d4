"""Exports what agents did as files of ATIF, the Agent Trajectory Interchange Format of Harbor: one a turn and sample.

Source: RFC 0001 of Harbor (rfcs/0001-trajectory-format.md, https://github.com/harbor-framework/harbor), version 1.7; of
1.8 nothing is needed.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eval_pipeline import __version__
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.provenance import UNKNOWN
from eval_pipeline.reports.contents.facts import provenance_of
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.files.json_text import readable_json
from eval_pipeline.reports.files.traces import traces
from eval_pipeline.reports.places.paths import safe_name
from eval_pipeline_plugins.exports.origins import CORRECT, asked_messages, model_of, scores_of
from eval_pipeline_plugins.tracks.agent.trajectory import ActStep, Trajectory
from eval_pipeline_plugins.trajectories import (
    AGENT,
    OURS,
    CallOfModel,
    exchanges,
    own_end,
    own_fields,
    trajectory_of,
    way_of,
)

VERSION = "ATIF-v1.7"
_DEPTH = 12


def write_atif(evaluation: Evaluation, folder: Path) -> tuple[int, int]:
    """Writes `<case>.<turn>.<sample>.json` for each turn in which an agent did something.

    Returns:
        The number of files, and of turns that have none since nothing was done.

    Raises:
        UsageError: the evaluation is of another track; the record lacks a table of it.
    """
    track = evaluation.profile.track
    if track != AGENT:
        name = evaluation.partition.suite
        raise UsageError(f"suite '{name}' is of track {track}; only attempts of track {AGENT} are trajectories")
    written = without = 0
    for case, trace in traces(evaluation):
        for turn in trace["turns"]:
            if (done := trajectory_of(turn)) is None:
                without += 1
                continue
            name = f"{safe_name(case)}.{turn['turn_idx']}.{turn['sample']}.json"
            told = _document(evaluation, trace, turn, done)
            (folder / name).write_text(readable_json(told, _DEPTH), encoding="utf-8")
            written += 1
    return written, without


def _document(evaluation: Evaluation, trace: Row, turn: Row, done: Trajectory) -> dict[str, Any]:
    place = evaluation.partition
    steps = [*_asked(turn), *map(_agent_step, exchanges(done))]
    scores = {one.name: one.label if one.value is None else one.value for one in scores_of(evaluation, turn)}
    return {
        "schema_version": VERSION,
        "session_id": "/".join((place.suite, place.model_version, place.eval_date.isoformat())),
        "trajectory_id": f"{turn['trace_id']}~{turn['sample']}",
        "agent": _agent(evaluation),
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
        "final_metrics": _final(turn, len(steps)),
        "extra": {
            "suite": place.suite,
            "case_id": trace["conversation_id"],
            "turn_index": turn["turn_idx"],
            "sample": turn["sample"],
            "model_version": place.model_version,
            "eval_date": place.eval_date.isoformat(),
            "simulated": evaluation.simulated,
            CORRECT: turn["correct"],
            "scores": scores,
            **way_of(turn),
            OURS: own_end(done),
        },
    }


def _agent(evaluation: Evaluation) -> dict[str, Any]:
    """Returns who acted: we, or whoever made what is recorded."""
    model = "/".join(model_of(evaluation))
    if not evaluation.model["recorded"]:
        return {"name": "eval-pipeline", "version": __version__, "model_name": model}
    return {"name": str(provenance_of(evaluation).get("tool") or UNKNOWN), "version": UNKNOWN, "model_name": model}


def _asked(turn: Row) -> Iterator[dict[str, Any]]:
    asked, is_made_up = asked_messages(turn["attempts"][-1], turn["question"])
    for role, text in asked:
        source = "agent" if role == "assistant" else role
        copied = {"is_copied_context": True} if role == "assistant" else {}
        extra = {"extra": {"prompt": UNKNOWN, "shown_here": "the suite's question"}} if is_made_up else {}
        yield {"source": source, "message": text, **copied, **extra}


def _agent_step(one: CallOfModel) -> dict[str, Any]:
    """Returns a call of the model with its tools; a tool that was called without one is dispatched by no model."""
    calls = [
        {"tool_call_id": key, "function_name": call.name, "arguments": dict(call.arguments)}
        for key, call in one.calls.items()
    ]
    results = [
        _known({"source_call_id": key, "content": step.text, "extra": _own(step)}) for key, step in one.results.items()
    ]
    step: dict[str, Any] = {
        "source": "agent",
        "message": "" if one.model is None else one.model.text,
        "llm_call_count": 0 if one.model is None else 1,
        "tool_calls": calls or None,
        "observation": {"results": results} if results else None,
    }
    if one.model is not None:
        told = one.model.measured
        names = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens", "cost_usd": "usd"}
        metrics = _known({theirs: told.get(ours) for theirs, ours in names.items()})
        step |= {"metrics": metrics or None, "extra": _own(one.model)}
    return _known(step)


def _own(step: ActStep) -> dict[str, Any] | None:
    return {OURS: own} if (own := own_fields(step)) else None


def _final(turn: Row, steps: int) -> dict[str, Any]:
    cached = [attempt["cache_read_tokens"] for attempt in turn["attempts"]]
    known = {
        "total_prompt_tokens": turn["input_tokens"],
        "total_completion_tokens": turn["output_tokens"],
        "total_cached_tokens": None if None in cached else sum(cached),
        "total_cost_usd": turn["usd"],
        "total_steps": steps,
        "extra": _known({"latency_ms": turn["latency_ms"]}) or None,
    }
    return _known(known)


def _known(told: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if value is not None}
