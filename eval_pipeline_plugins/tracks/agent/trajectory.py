"""What an agent did in one attempt: calls of the model and of tools, the answer, why it ended, what has changed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from eval_pipeline.answers.json_text import ArtefactError
from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import CallErrorKind, ErrorClass, Json, ToolCall
from eval_pipeline.core.system.programs import CRASHED
from eval_pipeline.core.values import value

LIMITS = ("steps", "model_calls", "tokens", "usd", "seconds")
STOPPED = (CallErrorKind.REFUSED.value, CallErrorKind.MAX_TOKENS.value)
ENDS = ("answered", "gave_up", CRASHED, *LIMITS, *STOPPED, "harness")
"""Why an attempt ended: with an answer, without calling `answer`, as its program failed, at a limit of the case,
because the model was stopped before it had said what to do next, or by an error of the world."""
_MEASURED = ("input_tokens", "output_tokens", "usd", "latency_ms", "from_journal", "seconds")
MOST = 10**15
"""Nothing has more rows, bytes, tokens, dollars or seconds; who says so tells nothing."""
ANSWER = "answer"
"""The tool that ends an attempt; its argument `answer` is the answer."""
ASK = "ask_user"
"""The tool that asks the user."""
WAY = "way"
"""The kind of the evidence about the way of an attempt."""


@value
class ActStep:
    """One call of the model or of a tool.

    Attributes:
        kind: `model` or `tool`.
        text: what the model said, or what the tool gave.
        calls: the tools that the model called; for a tool, its own call alone.
        error_class: why a tool failed; None if it did not.
        rows, size: rows of the table that a tool gave, and bytes of its whole result; None if they are not known.
        cut: whether the model was told a part of the result only.
        measured: tokens, dollars and times, which decide nothing.
        made: variables that a cell in Python has made, as `made_variables` reads them; of older records nothing.
    """

    kind: str
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    error_class: str | None = None
    rows: int | None = None
    size: int | None = None
    cut: bool = False
    measured: Mapping[str, Json] = field(default_factory=dict)
    made: Sequence[Mapping[str, Json]] = ()


@value
class Trajectory:
    """One attempt.

    Attributes:
        answer: what was given to the tool `answer`; None without one.
        ended: one of `ENDS`.
        why: a sentence if it did not end with an answer.
        end_state: by path in the world what has changed, as `ChangedFile.as_json` tells it; None for a removed file.
            None as a whole if it is unknown, as of an attempt that another tool logged.
        is_script: whether the steps are calls that are still to be made, as those of a gold are.
    """

    steps: tuple[ActStep, ...]
    answer: Json = None
    ended: str = "answered"
    why: str = ""
    end_state: Mapping[str, Json] | None = field(default_factory=dict)
    is_script: bool = False

    def tool_steps(self) -> tuple[ActStep, ...]:
        """Returns the calls of tools, in order."""
        return tuple(step for step in self.steps if step.kind == "tool")

    def answers(self) -> list[Json]:
        """Returns what was given to the tool `answer`, in order; a task with several messages has several."""
        made = (step.calls[0] for step in self.tool_steps() if step.error_class is None)
        return [call.arguments.get(ANSWER) for call in made if call.name == ANSWER]

    def as_json(self) -> Json:
        """Returns it as JSON; `parse_trajectory` reads its text."""
        if self.is_script:
            return [_call_json(step.calls[0]) for step in self.steps]
        return {
            "steps": [_step_json(step) for step in self.steps],
            "answer": self.answer,
            "ended": self.ended,
            "why": self.why,
            "end_state": None if self.end_state is None else dict(self.end_state),
        }


def parse_trajectory(text: str) -> Trajectory:
    """Reads a trajectory, or a script: a list of calls that ends with `answer`.

    Raises:
        ArtefactError: it is neither.
    """
    if not text.strip():
        raise ArtefactError(ErrorClass.OTHER, "the response is empty")
    try:
        return trajectory_from_json(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise ArtefactError(ErrorClass.SYNTAX, f"no trajectory: {error}") from None


def trajectory_from_json(told: Any) -> Trajectory:
    """Reads what `Trajectory.as_json` wrote. Raises a ValueError with one sentence."""
    match told:
        case [*calls] if calls:
            steps = tuple(ActStep("tool", calls=(_call(one),)) for one in calls)
            return Trajectory(steps, is_script=True)
        case {"steps": [*steps], "ended": str() as ended}:
            if ended not in ENDS:
                raise ValueError(f"unknown end '{ended}'; known: {', '.join(ENDS)}")
            changed = told.get("end_state")
            if not isinstance(changed, dict | None):
                raise ValueError("'end_state' is no object")
            from eval_pipeline.sandbox.world.changes import changed as read_change

            for path, one in (changed or {}).items():
                try:
                    read_change(one)
                except ValueError as error:
                    raise ValueError(f"'end_state', {path}: {error}") from None
            why = str(told.get("why") or "")
            return Trajectory(tuple(map(_step, steps)), told.get("answer"), ended, why, changed)
    raise ValueError("expected a list of calls, or an object with 'steps' and 'ended'")


def _call(told: Any) -> ToolCall:
    match told:
        case {"name": str() as name, **rest}:
            arguments = rest.get("arguments") or {}
            if isinstance(arguments, dict):
                return ToolCall("", name, arguments)
    raise ValueError("a call has no 'name', or its 'arguments' are no object")


def _step(told: Any) -> ActStep:
    if not isinstance(told, dict) or told.get("kind") not in ("model", "tool"):
        raise ValueError("a step is neither of kind 'model' nor 'tool'")
    measured = {name: told[name] for name in _MEASURED if name in told and _is_measure(told[name])}
    if told["kind"] == "model":
        return ActStep(
            "model", str(told.get("text") or ""), tuple(map(_call, told.get("calls") or ())), measured=measured
        )
    from eval_pipeline.sandbox.world.made import made_variables

    error = told.get("error_class")
    return ActStep(
        "tool",
        str(told.get("result") or ""),
        (_call(told),),
        None if error is None else str(error),
        _count(told.get("rows")),
        _count(told.get("bytes")),
        told.get("cut") is True,
        measured,
        made_variables(told["made"]) if "made" in told else (),
    )


def _is_measure(told: Any) -> bool:
    return told is None or (isinstance(told, int | float) and 0 <= told <= MOST)


def _count(told: Any) -> int | None:
    return told if type(told) is int and _is_measure(told) else None


def _call_json(call: ToolCall) -> dict[str, Json]:
    return {"name": call.name, "arguments": dict(call.arguments)}


def _step_json(step: ActStep) -> Json:
    if step.kind == "model":
        return {"kind": "model", "text": step.text, "calls": [_call_json(one) for one in step.calls], **step.measured}
    told = {
        "result": step.text,
        "error_class": step.error_class,
        "rows": step.rows,
        "bytes": step.size,
        "cut": step.cut,
    }
    made = {"made": [dict(one) for one in step.made]} if step.made else {}
    return {"kind": "tool", **_call_json(step.calls[0]), **told, **step.measured, **made}


def trajectory_text(trajectory: Trajectory) -> str:
    """Returns the text of a response with this trajectory, the same for the same trajectory."""
    return canonical_json(trajectory.as_json())
