"""The metrics of the track: whether an attempt is right, in what it is not, and what it took."""

from collections.abc import Mapping, Sequence
from typing import Any

from eval_pipeline.core.model import MetricResult
from eval_pipeline.core.system.programs import CRASHED
from eval_pipeline_plugins.tracks.agent.checking.foreign import may_give_rows, rows_of, runs_code
from eval_pipeline_plugins.tracks.agent.trajectory import LIMITS, ActStep

FAILURE_MODES = (
    "out_of_budget",
    "forbidden",
    CRASHED,
    "gave_up",
    "invented",
    "not_looked",
    "wrong_table",
    "wrong_filter_or_join",
    "wrong_arithmetic",
    "right_not_answered",
    "no_answer",
    "side_effect",
    "wrong_answer",
    "not_done",
    "wrong_state",
    "harness",
)
"""Those that evidence about the way tells first; the others where it does not tell more."""
Checks = Mapping[str, Sequence[Mapping[str, Any]]]
"""By kind, the details of its checks with `passed`."""


def task_correct(checks: Checks, unjudged: str | None) -> bool | MetricResult:
    """Returns whether all checks are passed, and why not; NULL if nobody can judge that."""
    if unjudged:
        return MetricResult(None, reason=unjudged)
    failed = [one["words"] for kind in checks.values() for one in kind if not one["passed"]]
    return MetricResult(0.0, reason="; ".join(filter(None, failed)) or None) if failed or not checks else True


def checks_passed(checks: Checks, unjudged: str | None) -> float | MetricResult:
    """Returns the share of checks that are passed, by weight."""
    if unjudged:
        return MetricResult(None, reason=unjudged)
    found = [one for kind in checks.values() for one in kind]
    total = sum(one["weight"] for one in found)
    return sum(one["weight"] for one in found if one["passed"]) / total if total else 0.0


def _all(checks: Checks, kind: str) -> bool | None:
    return all(one["passed"] for one in checks[kind]) if kind in checks else None


def answer_correct(checks: Checks) -> bool | None:
    """Returns whether the answer is right; NULL where only effects count, or nothing came of it."""
    return _all(checks, "answer")


def state_correct(checks: Checks) -> bool | None:
    """Returns whether the end state is that of the gold."""
    return _all(checks, "state")


def queries_hold(checks: Checks) -> bool | None:
    """Returns whether all queries give what they have to, and all commands succeed."""
    found = [one["passed"] for kind in ("query", "command") for one in checks.get(kind, ())]
    return all(found) if found else None


def rules_kept(checks: Checks) -> bool | None:
    """Returns whether nothing forbidden was tried or done."""
    return _all(checks, "forbidden")


def failure_mode(
    task_correct: bool | None, checks: Checks, way: Mapping[str, Any], ended: str | None, answered: bool
) -> str | None:
    """Returns the mode that the way tells, else one by checks; None for a correct turn and one without a result."""
    if task_correct or task_correct is None:
        return "harness" if ended == "harness" else None
    if found := way.get("mode"):
        return str(found)
    if ended in LIMITS:
        return "out_of_budget"
    if ended == CRASHED and all(one["passed"] for one in checks.get("forbidden", ())):
        return CRASHED
    if not checks or (not answered and "answer" in checks):
        return "no_answer"
    failed = {kind: [one for one in found if not one["passed"]] for kind, found in checks.items()}
    state = failed.get("state", ())
    if failed.get("forbidden"):
        return "forbidden"
    if any(one.get("beside") for one in state):
        return "side_effect"
    if failed.get("answer"):
        return "wrong_answer"
    return "not_done" if state and not any(one["changed"] for one in state) else "wrong_state"


def first_wrong_step(task_correct: bool | None, way: Mapping[str, Any]) -> int | None:
    """Returns the place of the step at which the attempt left every way to the gold; NULL where that is not told."""
    return None if task_correct or task_correct is None else way.get("step")


def never_looked(way: Mapping[str, Any]) -> int | None:
    """Returns the number of tables, files and facts of the user that the gold reads and the attempt never did."""
    return len(way["never_looked"]) if way else None


def rows_scanned(tools: Sequence[ActStep]) -> int | MetricResult:
    """Returns the number of rows that calls gave.

    NULL where a tool that is not ours may have given some, untold, and where code was run and no call tells any.
    """
    found = [rows_of(step) for step in tools]
    for place, (step, rows) in enumerate(zip(tools, found, strict=True), 1):
        if rows is None and step.error_class is None and may_give_rows(step.calls[0]):
            return MetricResult(None, reason=f"call {place} ({step.calls[0].name}) does not tell how many rows it gave")
    if set(found) == {None} and any(step.error_class is None and runs_code(step.calls[0]) for step in tools):
        return MetricResult(
            None, reason="what code prints does not tell how many rows it has seen, and no other call does"
        )
    return sum(rows or 0 for rows in found)


def model_calls(steps: Sequence[ActStep], ended: str | None) -> int | None:
    """Returns the number of calls of the model; NULL where it is not on record."""
    found = sum(step.kind == "model" for step in steps)
    return found or None


def tool_calls(tools: Sequence[ActStep]) -> int:
    """Returns the number of calls of tools."""
    return len(tools)


def tool_errors(tools: Sequence[ActStep]) -> int:
    """Returns the number of calls of tools that failed."""
    return sum(step.error_class is not None for step in tools)


def recovered_errors(tools: Sequence[ActStep]) -> int:
    """Returns the number of failed calls after which the same tool was called with success."""
    last = {step.calls[0].name: place for place, step in enumerate(tools) if step.error_class is None}
    return sum(
        step.error_class is not None and last.get(step.calls[0].name, -1) > place for place, step in enumerate(tools)
    )


def repeated_calls(tools: Sequence[ActStep]) -> int:
    """Returns the number of calls that were made before with the same arguments and gave the same."""
    seen, repeated = set[str](), 0
    for step in tools:
        key = repr((step.calls[0].name, sorted(step.calls[0].arguments.items(), key=repr), step.text))
        repeated += key in seen
        seen.add(key)
    return repeated
