"""Callers of scripted providers, singly and in batches."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from eval_pipeline.asking.answers import Answer, Answered
from eval_pipeline.asking.batches.intents import BatchIntents
from eval_pipeline.asking.batches.queue import BatchQueue
from eval_pipeline.asking.batches.work import Pace
from eval_pipeline.asking.calls import Caller
from eval_pipeline.asking.journal.port import Journal
from eval_pipeline.asking.retries import RetryPolicy
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline_tests.fakes.scripted import ScriptedProvider, make_call
from eval_pipeline_tests.fakes.scripted_batches import QUICK as QUICK_PACE
from eval_pipeline_tests.fakes.scripted_batches import BatchedProvider, make_version

QUICK = RetryPolicy(max_retries=3, first_pause_s=0.001, jitter=0.0)


def make_caller(provider: ScriptedProvider, journal: Journal, epoch: str = "", **settings: Any) -> Caller:
    own = {name: settings.pop(name) for name in ("concurrency", "deadline_s") if name in settings}
    version = ModelVersion(name="v", provider="scripted", model="m", **own)
    return Caller(provider, journal, version, epoch, **{"retries": QUICK, **settings})


@asynccontextmanager
async def batching(
    provider: BatchedProvider, journal: Journal, pace: Pace = QUICK_PACE, watch: Any = None, **settings: Any
) -> Any:
    """A caller whose calls go into batches."""
    version = make_version(**settings)
    queue = BatchQueue(provider, journal, version, pace=pace, **({"watch": watch} if watch else {}))
    try:
        yield Caller(provider, journal, version, batches=queue, retries=RetryPolicy(first_pause_s=0.001))
    finally:
        await queue.close()


def in_batches(
    provider: BatchedProvider, journal: Journal, turns: Iterable[int], **more: Any
) -> tuple[Caller, list[Answer]]:
    """Asks about the turns at once: the caller, and the answers in order."""

    async def ask() -> tuple[Caller, list[Answer]]:
        async with batching(provider, journal, **more) as caller:
            return caller, list(await asyncio.gather(*(caller.ask(make_call(turn)) for turn in turns)))

    return asyncio.run(asyncio.wait_for(ask(), 20))


def texts(answers: Sequence[Answer]) -> list[str]:
    return [answer.response.text if isinstance(answer, Answered) else answer.kind.value for answer in answers]


def batched(*turns: int) -> list[str]:
    """The texts of answers that came in a batch."""
    return [f"batched suite/case#{turn}" for turn in turns]


def open_intents(journal: Journal) -> int:
    return len(BatchIntents(journal.batches, make_version()).open())
