"""Makes planted attempts in their worlds: the loop of agents with a model that follows a plan, and the metrics."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from eval_pipeline.asking.answers import Answered
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Attempt, Json, MetricResult, Prompt, Ran, Response, ToolCall, ToolResult
from eval_pipeline.sandbox.world.errors import WorldError
from eval_pipeline.stages.attempts.agents.acting import act
from eval_pipeline_plugins.tracks.agent.cases.case_file import AgentCase
from eval_pipeline_plugins.tracks.agent.running.solving import result_of
from eval_pipeline_plugins.tracks.agent.track import TRACK
from eval_pipeline_plugins.tracks.agent.trajectory import ANSWER, Trajectory, parse_trajectory
from eval_pipeline_tests.tracks.agent.planted.plans import END, SUITES, Plan, filled, raw_cases

_ARGUMENT = {"python": "code", "shell": "command", "read_file": "path", "list_files": "path", "sql": "query"} | {
    "ask_user": "question",
}


@dataclass(frozen=True)
class Played:
    """What came of a plan.

    Attributes:
        trajectory: what was done.
        step: the place of the planted fault in its steps; None without one.
        metrics: all metrics of the track by name.
        why: why the attempt is not right.
    """

    plan: Plan
    trajectory: Trajectory
    step: int | None
    metrics: Mapping[str, Any]
    why: str

    @property
    def mode(self) -> str | None:
        """The mode that the metrics have to tell."""
        return self.plan.mode

    @property
    def found(self) -> tuple[str | None, int | None]:
        """The mode and the step that the metrics tell."""
        step = self.metrics.get("first_wrong_step")
        return self.metrics["failure_mode"], None if step is None else int(step)


@dataclass(frozen=True)
class _Asked:
    prompt: Prompt


class _Follower:
    """Takes the place of `Caller`: says what is planned, with what the tools have told."""

    version = None

    def __init__(self, plan: Plan, case: AgentCase) -> None:
        self._plan, self._databases = plan, case.context.world.databases

    def key(self, asked: _Asked) -> str:
        return ""

    async def once(self, place: Json, asked: _Asked, make: Any) -> Response:
        return cast(Response, await make())

    async def ask(self, asked: _Asked) -> Answered:
        messages, moves = asked.prompt.messages, self._plan.moves()
        at = sum(one.role == "assistant" for one in messages)
        told = {one.call_id: one.text for one in messages if one.role == "tool"}
        names = moves[at] if at < len(moves) else []
        calls = tuple(self._call(name, told) for name in names)
        said = self._plan.says.get(names[0], "") if names else "That is all that I can do."
        return Answered(Response(said, calls=calls), from_journal=False)

    def _call(self, name: str, told: Mapping[str, str]) -> ToolCall:
        ((tool, given),) = self._plan.calls[name].items()
        if tool == ANSWER:
            return ToolCall(name, tool, {ANSWER: filled(given, told)})
        if tool in self._databases:
            tool, given = "sql", {"database": tool, "query": given}
        arguments = given if isinstance(given, dict) else {_ARGUMENT[tool]: given}
        return ToolCall(name, tool, {key: filled(one, told) for key, one in arguments.items()})


class _Ending:
    """A world that ends at a call."""

    def __init__(self, world: Any, plan: Plan) -> None:
        self._world, self._plan, self._done = world, plan, 0

    async def call(self, name: str, arguments: Mapping[str, Json], seconds: float) -> ToolResult:
        if self._done == list(self._plan.calls).index(str(self._plan.fails)):
            raise WorldError("the jail has ended")
        self._done += 1
        return cast(ToolResult, await self._world.call(name, arguments, seconds))

    async def end_state(self) -> Mapping[str, Json]:
        return cast(Mapping[str, Json], await self._world.end_state())


class _Worlds:
    """Takes the place of the track in the loop."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.limits, self.surroundings = TRACK.limits, TRACK.surroundings

    @asynccontextmanager
    async def world(self, executor: Any, case: AgentCase, turn: Any) -> AsyncIterator[Any]:
        async with TRACK.world(executor, case, turn) as world:
            yield world if self._plan.fails is None else _Ending(world, self._plan)


@cache
def _shared(suite: str) -> Any:
    import yaml

    header = yaml.safe_load((SUITES[suite] / "suite.yaml").read_text())
    return TRACK.read_shared(SUITES[suite], header.get("options", {}))


def case_of(plan: Plan) -> AgentCase:
    """Returns the case of a plan, with its limits."""
    raw = dict(raw_cases(plan.suite)[plan.task])
    raw |= {"limits": {**raw.get("limits", {}), **plan.limits}} if plan.limits else {}
    return TRACK.read_case(raw, plan.suite, "cases.yaml", 1, _shared(plan.suite))


def played(chosen: Sequence[Plan]) -> list[Played]:
    """Makes the attempts of plans and scores them."""
    cases = [case_of(plan) for plan in chosen]

    async def made() -> list[str]:
        async with TRACK.executor() as executor:
            return [await _text(plan, case, executor) for plan, case in zip(chosen, cases, strict=True)]

    return [_scored(*told) for told in zip(chosen, cases, asyncio.run(made()), strict=True)]


async def _text(plan: Plan, case: AgentCase, executor: Any) -> str:
    follower: Any = _Follower(plan, case)
    worlds: Any = _Worlds(plan)
    asked: Any = _Asked(TRACK.prompt(case, case.turns[0], (), TRACK.prompt_versions[-1]))
    answer = await act(worlds, executor, follower, asked, case, case.turns[0])
    assert isinstance(answer, Answered), answer
    return answer.response.text


def _scored(plan: Plan, case: AgentCase, text: str) -> Played:
    turn, trajectory = case.turns[0], parse_trajectory(text)
    attempt = Attempt(turn.id, 0, 0, "", Response(text), None, trajectory, Ran(result_of(trajectory)))
    told = TRACK.values(case, turn, [attempt], TRACK.gather(case, turn, attempt))
    metrics, why = dict[str, Any](), ""
    for metric in TRACK.metrics:
        found = metric.function(**{name: metrics.get(name, told.get(name)) for name in metric.inputs()})
        if isinstance(found, MetricResult):
            why = found.reason or why
            found = found.value
        metrics[metric.name] = found
    return Played(plan, trajectory, _place(plan, text), metrics, why)


def _place(plan: Plan, text: str) -> int | None:
    import json

    steps = json.loads(text)["steps"]
    if plan.at == END:
        return len(steps) - 1
    places = [n for n, one in enumerate(steps) if one["kind"] == "tool" and one["id"] == plan.at]
    assert len(places) == (plan.at is not None), f"{plan.id}: the call {plan.at} was not made"
    return places[0] if places else None


def shown(one: Played) -> str:
    """Returns a trajectory to be read by people."""
    lines = [f"## {one.plan.id} {one.plan.mode} at {one.plan.at} = {one.step}; found {one.found}; {one.why}"]
    for place, step in enumerate(one.trajectory.steps):
        if step.kind == "tool":
            [call] = step.calls
            given = " ".join(str(value) for value in call.arguments.values())
            lines.append(f"{place} {call.name} {given[:400]}\n    -> {step.error_class or ''} {step.text[:400]}")
        elif step.text:
            lines.append(f"{place} model: {step.text}")
    return "\n".join([*lines, f"answer {json_text(one.trajectory.answer)}, ended {one.trajectory.ended}"])
