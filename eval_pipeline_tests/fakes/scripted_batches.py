"""A provider with batches that follows a script, kept apart from the endpoint that outlives it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from eval_pipeline.asking.batches.work import Pace
from eval_pipeline.core.model import CallErrorKind, Response, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Batch, Call, CallError
from eval_pipeline_tests.fakes.scripted import ScriptedProvider

QUICK = Pace(linger_s=0.02, first_poll_s=0.001, longest_poll_s=0.005, listed_after_s=0.05)

Entry = Response | CallError | None
"""What becomes of a request; None: its result is missing."""


def make_version(**settings: Any) -> ModelVersion:
    """A model version that is asked in batches."""
    return ModelVersion(**{"name": "v", "provider": "scripted", "model": "m", "batch": True, **settings})


@dataclass
class Held:
    """A batch as the endpoint holds it."""

    id: str
    calls: dict[str, Call]
    created_at: datetime
    looks_left: int
    known: bool = True


@dataclass
class Endpoint:
    """What lives on when a run is killed.

    Attributes:
        looks: at a batch until it ends.
        refuse, lose_reply: raised in place of taking a batch, and after it was taken, one a try.
        break_results: after how many results reading them breaks, one a try.
        skew: of its clock.
    """

    looks: int = 1
    entry: Callable[[Call], Entry] = lambda call: Response(f"batched {call.turn_id}", usage=Usage(10, 2))
    refuse: list[Exception] = field(default_factory=list)
    lose_reply: list[Exception] = field(default_factory=list)
    break_results: list[int] = field(default_factory=list)
    skew: timedelta = timedelta(0)
    result_pause_s: float = 0.0
    held: list[Held] = field(default_factory=list)
    looked: int = 0

    def take(self, calls: Mapping[str, Call], ago: timedelta = timedelta(0)) -> Held:
        created_at = datetime.now(UTC) + self.skew - ago
        batch = Held(f"batch-{len(self.held)}", dict(calls), created_at, self.looks)
        self.held.append(batch)
        return batch

    def sizes(self) -> list[int]:
        return [len(batch.calls) for batch in self.held]


class BatchedProvider(ScriptedProvider):
    """Singles by the script of `ScriptedProvider`, batches at an endpoint."""

    max_batch_requests: ClassVar[int] = 1000
    max_batch_bytes: ClassVar[int] = 10_000_000

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__()
        self.endpoint = endpoint

    async def submit_batch(self, calls: Mapping[str, Call]) -> Batch:
        await asyncio.sleep(0)
        if self.endpoint.refuse:
            raise self.endpoint.refuse.pop(0)
        taken = self.endpoint.take(calls)
        if self.endpoint.lose_reply:
            raise self.endpoint.lose_reply.pop(0)
        return _shown(taken)

    async def batch(self, batch_id: str) -> Batch | None:
        found = self._find(batch_id)
        self.endpoint.looked += 1
        if not found.known:
            return None
        shown = _shown(found)
        found.looks_left -= 1
        return shown

    async def batches(self, since: datetime) -> AsyncIterator[Batch]:
        for held in reversed(self.endpoint.held):
            if held.created_at >= since:
                yield _shown(held)

    async def batch_results(self, batch_id: str) -> AsyncGenerator[tuple[str, Response | CallError], None]:
        found = self._find(batch_id)
        breaks = self.endpoint.break_results.pop(0) if self.endpoint.break_results else None
        for number, (key, call) in enumerate(found.calls.items()):
            if number == breaks:
                raise CallError(CallErrorKind.CONNECTION, "the results broke off", retryable=True)
            entry = self.endpoint.entry(call)
            if entry is not None:
                yield key, entry
            await asyncio.sleep(self.endpoint.result_pause_s)

    def _find(self, batch_id: str) -> Held:
        return next(held for held in self.endpoint.held if held.id == batch_id)


def _shown(held: Held) -> Batch:
    return Batch(held.id, len(held.calls), held.created_at, held.looks_left <= 0)


def turns(asked: Iterable[Call]) -> list[int]:
    """Which turns were asked, sorted."""
    return sorted(call.turn_index for call in asked)
