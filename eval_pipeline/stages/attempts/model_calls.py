"""Opening what a stage asks models through: provider, journal, limits, budget, batches; and workers that ask."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from eval_pipeline.asking.batches.queue import BatchQueue
from eval_pipeline.asking.batches.work import Pace
from eval_pipeline.asking.calls import Caller, Counters
from eval_pipeline.asking.immediate_calls import ImmediateCaller
from eval_pipeline.asking.journal.sqlite import Journal
from eval_pipeline.asking.limits import shared_limit
from eval_pipeline.core.model import Json, Partition
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Environment, Provider
from eval_pipeline.providers.registry import create, traits_of
from eval_pipeline.providers.standins.inprocess import Immediate
from eval_pipeline.stages.attempts.spending import budget_of
from eval_pipeline.tracks.base import Executor
from eval_pipeline.workspace.progress import label_of
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.workspace import Progress, Workspace

T = TypeVar("T")

PACE = Pace()
_MOST_IN_BATCHES = 10_000
"""Questions that wait for batches at once; each holds its prompt in memory."""
_IMMEDIATE_WORKERS = 2
"""While one waits for the journal, the other asks."""


def provider_for(workspace: Workspace, version: ModelVersion) -> Provider:
    """The provider of a model version, not started. Raises EvalError where its settings are wrong."""
    return create(version, Environment(predictions_dir=str(workspace.home.predictions)))


@asynccontextmanager
async def open_caller(
    workspace: Workspace,
    partition: Partition,
    run: RunContext,
    provider: Provider,
    counts: Counters,
    progress: Progress,
) -> AsyncIterator[Caller]:
    """A caller over the home's journal, within what the run may spend; the provider is open while it is.

    `counts` are the caller's counters: the stage's own, which also an exception leaves behind.
    """
    version = workspace.model_version(partition.model_version)
    limit = shared_limit(version)
    limit.start(version.concurrency)
    budget = budget_of(workspace, partition, run.run_id, version)
    journal = Journal(workspace.home.journal)
    try:
        bars = _BatchBars(progress, partition)
        batches = BatchQueue(provider, journal, version, pace=PACE, watch=bars) if version.batch else None
        async with provider:
            kind = ImmediateCaller if isinstance(provider, Immediate) and not budget.limited else Caller
            caller = kind(provider, journal, version, run.epoch, limit=limit, budget=budget, batches=batches)
            caller.counters = counts
            try:
                yield caller
            finally:
                if batches is not None:
                    await batches.close()
    finally:
        journal.close()


async def ask_together(
    items: Iterable[T],
    count: int,
    version: ModelVersion,
    caller: Caller,
    executor: Executor,
    ask: Callable[[Sequence[T]], Awaitable[None]],
) -> None:
    """Has so many items, which can be asked independently of each other, asked: several side by side.

    Where nothing is waited for, they are handed to `ask` many at a time; else one at a time, to many workers.
    """
    size = caller.together if executor.immediate else 1
    workers = _IMMEDIATE_WORKERS if size > 1 else _MOST_IN_BATCHES if version.batch else version.concurrency
    waiting = iter(items)

    async def work() -> None:
        while group := list(islice(waiting, size)):
            await ask(group)

    await run_together([work() for _ in range(min(workers, count))])


def asking_facts(version: ModelVersion, counts: Counters) -> dict[str, Json]:
    """What a stage tells of its calls."""
    facts: dict[str, Json] = {"calls": counts.calls, "journal_hits": counts.journal_hits}
    facts["call_errors"] = counts.failures
    if counts.refused:
        facts["refused_by_budget"] = counts.refused
    if counts.answered and traits_of(version.provider).charged:
        limit = shared_limit(version)
        facts |= {"tokens_spent": counts.tokens, "usd_spent": counts.usd}
        facts |= {"in_flight_limit": limit.limit, "in_flight_limit_lowest": int(limit.lowest)}
    return facts


async def run_together(workers: Sequence[Coroutine[None, None, None]]) -> None:
    """Runs workers until all are done; the first to fail ends the others, and its exception is raised as it is."""
    try:
        async with asyncio.TaskGroup() as tasks:
            for worker in workers:
                tasks.create_task(worker)
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


@dataclass(frozen=True, slots=True)
class _BatchBars:
    """Shows which batches are waited for, and what else of batches takes its time."""

    progress: Progress
    partition: Partition

    def waiting(self, what: str) -> None:
        self.progress.start(label_of(self.partition, what), 0)

    def over(self, what: str) -> None:
        self.progress.finish(label_of(self.partition, what))
