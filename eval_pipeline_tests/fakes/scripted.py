"""A provider that follows a script, and a gold to ask it about: for tests of anything that asks a model."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from types import TracebackType
from typing import Self

from eval_pipeline.core.model import Json, Message, Prompt, Response, Tool
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Call, Environment, Traits


@dataclass(frozen=True)
class PlainGold:
    """A gold whose right answer and wrong answers are given."""

    answer: str = "42"
    damages: Mapping[str, str | None] = field(default_factory=lambda: {"sign_error": "-42", "no_answer": ""})

    def fingerprint(self) -> str:
        return f"gold:{self.answer}"

    def oracle(self) -> str:
        return self.answer

    def failure_modes(self) -> tuple[str, ...]:
        return tuple(self.damages)

    def damage(self, mode: str, rng: Random) -> str | None:
        return self.damages[mode]


@dataclass(frozen=True)
class Slow:
    """A step that takes its time."""

    seconds: float
    then: "str | Response | Exception" = "slow answer"


@dataclass(frozen=True)
class Held:
    """A step that ends when it is told to."""

    until: asyncio.Event
    then: "str | Response | Exception" = "late answer"


Step = str | Response | Exception | Slow | Held


class ScriptedProvider(Traits):
    """Gives what the script says for each turn, step by step; keeps a log of what it was asked."""

    def __init__(
        self,
        version: ModelVersion | None = None,
        environment: Environment | None = None,
        *,
        script: Mapping[str, Sequence[Step]] | None = None,
        default: Step | None = "answer",
    ) -> None:
        """`script`: turn id → steps, one a call; `default`: what others get; None: asking is a fault of the test."""
        self._script = {turn: list(steps) for turn, steps in (script or {}).items()}
        self._default = default
        self.asked: list[Call] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.opened = 0
        self.closed = 0

    def request(self, call: Call) -> Json:
        return {"turn": call.turn_id, "number": call.number, "prompt": call.prompt.text()}

    async def generate(self, call: Call) -> Response:
        self.asked.append(call)
        steps = self._script.get(call.turn_id)
        step = steps.pop(0) if steps else self._default
        if step is None:
            raise AssertionError(f"{call.turn_id} was asked more often than the script says")
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if isinstance(step, Slow):
                await asyncio.sleep(step.seconds)
                step = step.then
            elif isinstance(step, Held):
                await step.until.wait()
                step = step.then
        finally:
            self.in_flight -= 1
        if isinstance(step, Exception):
            raise step
        return step if isinstance(step, Response) else Response(step)

    async def __aenter__(self) -> Self:
        self.opened += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closed += 1


@dataclass(frozen=True, slots=True)
class PlainTask:
    """A turn without context."""

    question: str

    def as_json(self) -> Json:
        return {"question": self.question, "context": {}, "history": []}

    def for_program(self) -> tuple[str, Json]:
        return self.question, None


def make_call(
    turn: int = 0,
    *,
    case: str = "case",
    sample: int = 0,
    number: int = 0,
    text: str = "What is six times seven?",
    gold: PlainGold | None = None,
    track: str = "",
    complexity: int = 0,
    schema: Mapping[str, Json] | None = None,
    tools: tuple[Tool, ...] = (),
) -> Call:
    """A call about turn `suite/<case>#<turn>`."""
    prompt = Prompt((Message("system", "Answer."), Message("user", text)), shared=1, answer_schema=schema, tools=tools)
    place = {"suite": "suite", "case_id": case, "turn_id": f"suite/{case}#{turn}", "turn_index": turn}
    asked = {"prompt": prompt, "gold": gold or PlainGold(), "task": PlainTask(text)}
    return Call(**place, **asked, sample=sample, number=number, track=track, complexity=complexity)
