"""Attempts of agents between our form and those of other tools: what our steps lack there, and what theirs lack here.

A step of ours in another tool's log has our own fields beside that tool's, under the name `eval_pipeline`; where they
are, they count. Other logs tell less: no end state, and no tool `answer`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eval_pipeline.core.model import Json, ToolCall
from eval_pipeline.core.values import value
from eval_pipeline.reports.evaluation import Row
from eval_pipeline_plugins.tracks.agent.trajectory import ANSWER, ENDS, ActStep, Trajectory, trajectory_from_json

OURS = "eval_pipeline"
"""Name of our own fields in the metadata of other tools."""
AGENT = "agent"
"""The track whose responses are attempts of agents."""
WAY = "way"
"""Kind of evidence that tells where an attempt went wrong."""
SUBMITS = (ANSWER, "submit")
"""Tools whose argument `answer` ends an attempt: ours, and that of Inspect's agents."""
_OF_TOOL = ("error_class", "rows", "bytes", "cut", "made", "seconds", "latency_ms")
_OF_MODEL = ("input_tokens", "output_tokens", "usd", "latency_ms", "from_journal")
_OF_END = ("answer", "ended", "why", "end_state")


def trajectory_of(turn: Row) -> Trajectory | None:
    """Returns what an agent did in a turn of a trace, with the end of a script that was followed; None without one."""
    last = turn["attempts"][-1] if turn["attempts"] else None
    if last is None or last["artefact"] is None:
        return None
    found = trajectory_from_json(last["artefact"])
    result = last["result"]
    if not found.is_script or not isinstance(result, Mapping) or "answers" not in result:
        return found
    answer = result["answers"][-1] if result["answers"] else None
    return Trajectory(found.steps, answer, result["ended"], result["why"], result["end_state"])


@value
class CallOfModel:
    """A call of the model with the calls of tools that it led to.

    Attributes:
        model: the call of the model; None where a tool was called without one, as by a person or a script.
        calls: the calls that it made, by ids that are unique within the attempt.
        results: what came of them, by the same ids; those that were not made any more are missing.
    """

    model: ActStep | None
    calls: Mapping[str, ToolCall]
    results: Mapping[str, ActStep]


def exchanges(trajectory: Trajectory) -> Iterator[CallOfModel]:
    """Yields the steps of an attempt as most tools log them: each call of the model with what it led to."""
    model: ActStep | None = None
    calls, results = dict[str, ToolCall](), dict[str, ActStep]()
    number = 0
    for step in trajectory.steps:
        open_calls = (one for one, call in calls.items() if one not in results and _same(call, step.calls))
        mine = next(open_calls, None) if step.kind == "tool" else None
        if mine is not None:
            results[mine] = step
            continue
        if model is not None or calls:
            yield CallOfModel(model, calls, results)
        named = {f"call_{number + place}": call for place, call in enumerate(step.calls, 1)}
        number += len(named)
        model, calls, results = (step, named, {}) if step.kind == "model" else (None, named, dict.fromkeys(named, step))
    if model is not None or calls:
        yield CallOfModel(model, calls, results)


def _same(call: ToolCall, made: Sequence[ToolCall]) -> bool:
    return [(call.name, call.arguments)] == [(one.name, one.arguments) for one in made]


def own_end(trajectory: Trajectory) -> dict[str, Json]:
    """Returns how an attempt ended, as fields of ours in another tool's log."""
    told = trajectory.as_json()
    assert isinstance(told, dict)
    return {name: told[name] for name in _OF_END}


def way_of(turn: Row) -> dict[str, Json]:
    """Returns the evidence on where an attempt went wrong, under its name; empty if there is none."""
    return next(({WAY: one["details"]} for one in turn["evidence"] if one["kind"] == WAY), {})


def own_fields(step: ActStep) -> dict[str, Json]:
    """Returns what other tools have no field for in a step; empty if it tells nothing more."""
    told: dict[str, Any] = {"error_class": step.error_class, "rows": step.rows, "bytes": step.size, **step.measured}
    more: dict[str, Json] = {"cut": True} if step.cut else {}
    more |= {"made": [dict(one) for one in step.made]} if step.made else {}
    return {name: value for name, value in told.items() if value is not None} | more


def model_step(text: str, calls: Sequence[Mapping[str, Json]], told: Mapping[str, Any]) -> dict[str, Json]:
    """Returns a call of the model in the form of `attempts.response`; each call has `name` and `arguments`."""
    return {"kind": "model", "text": text, "calls": list(calls), **_known(told, _OF_MODEL)}


def tool_step(call: Mapping[str, Json], result: str, told: Mapping[str, Any]) -> dict[str, Json]:
    """Returns a call of a tool in the form of `attempts.response`."""
    return {"kind": "tool", **call, "result": result, **_known(told, _OF_TOOL)}


def call_told(name: object, arguments: object) -> dict[str, Json]:
    """Returns a call of a tool; arguments that are no object become one with the name `input`."""
    given = (
        dict(arguments) if isinstance(arguments, Mapping) else {} if arguments in (None, "") else {"input": arguments}
    )
    return {"name": str(name or "tool"), "arguments": given}


def attempt(
    steps: Sequence[Mapping[str, Any]], own: Json = None, stopped: tuple[str, str] | None = None
) -> dict[str, Json]:
    """Returns an attempt in the form of `attempts.response`.

    Without fields of ours the answer is what was given to one of `SUBMITS`, or else what the model said last without
    calling a tool; the end state is unknown.

    Args:
        steps: its steps, from `model_step` and `tool_step`.
        own: `own_end`, if the log has it.
        stopped: why it ended before it had answered, one of `ENDS`, with a sentence.
    """
    if isinstance(own, Mapping) and own.get("ended") in ENDS:
        return {"steps": list(steps), **{name: own.get(name) for name in _OF_END}}
    done = [_as_answer(dict(step)) for step in steps]
    answers = [step for step in done if step["kind"] == "tool" and step["name"] == ANSWER]
    last = done[-1] if done else {}
    if not answers and stopped is None:
        missed = next((one for one in last.get("calls") or () if one["name"] in SUBMITS), None)  # nothing came back
        said = last["text"] if last.get("kind") == "model" and not last["calls"] else ""
        if missed is not None or said:
            given = missed["arguments"] if missed is not None else {ANSWER: said}
            answers = [_as_answer(tool_step(call_told(ANSWER, given), "", {}))]
            done += answers
    ended, why = ("answered", "") if answers else stopped or ("gave_up", "it ended without an answer")
    answer = answers[-1]["arguments"].get(ANSWER) if answers else None
    return {"steps": done, "answer": answer, "ended": ended, "why": why, "end_state": None}


def _as_answer(step: dict[str, Any]) -> dict[str, Any]:
    """Returns a step with our name of the tool that ends an attempt."""
    if step["kind"] == "tool" and step["name"] in SUBMITS and ANSWER in step["arguments"]:
        step["name"] = ANSWER
    return step


def _known(told: Mapping[str, Any], names: Sequence[str]) -> dict[str, Json]:
    return {name: told[name] for name in names if told.get(name) is not None}
