"""Opens everything needed to ask a model (provider, journal, limits, budget, batches) and runs the workers that ask."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from eval_pipeline.asking.answers import Counters
from eval_pipeline.asking.calls import Caller
from eval_pipeline.asking.immediate_calls import ImmediateCaller
from eval_pipeline.asking.journal.port import Journal
from eval_pipeline.asking.limits import shared_limit
from eval_pipeline.core.model import CALL_ERROR, CallFailure, Case, Json
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Provider
from eval_pipeline.providers.registry import create, provider_class, traits_of
from eval_pipeline.providers.standins.inprocess import Immediate
from eval_pipeline.stages.attempts.ask import Asker, Attempting, FailedCall, prefix_uses
from eval_pipeline.stages.attempts.asked import environment_of
from eval_pipeline.stages.attempts.executing import open_executor
from eval_pipeline.stages.attempts.rows import load_attempts
from eval_pipeline.stages.attempts.so_far import made_again
from eval_pipeline.stages.scoring.keeping import validation_kept
from eval_pipeline.stages.spending import budget_of, limit_facts
from eval_pipeline.state.place import state_place
from eval_pipeline.store.tables import GENERATIONS, RECOVERY_ATTEMPTS
from eval_pipeline.tracks.code import damage_code
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.watching.status import errors_text
from eval_pipeline.workspace.workspace import Workspace

if TYPE_CHECKING:
    from eval_pipeline.asking.batches.queue import BatchQueue
    from eval_pipeline.asking.batches.work import Pace

T = TypeVar("T")

PACE: "Pace | None" = None  # None: as batches usually go
_MOST_IN_BATCHES = 10_000
"""Number of questions waiting for batches at once; each keeps its prompt in memory."""
_IMMEDIATE_WORKERS = 2
"""While one worker waits for the journal, the other asks."""


def provider_for(workspace: Workspace, version: ModelVersion, *, asks: bool = True) -> Provider:
    """Creates the provider of a model version without starting it. Raises EvalError if its settings are wrong."""
    kind = provider_class(version.provider)
    code = workspace.fingerprints.of(kind).code if issubclass(kind, Immediate) else ""
    return create(version, environment_of(workspace, code), asks=asks)


@asynccontextmanager
async def open_asker(inputs: Inputs, provider: Provider, calls: Iterable[tuple[Case, int]]) -> AsyncIterator[Asker]:
    """Opens the journal and the provider for the duration of the block, and yields an object that makes attempts.

    Args:
        inputs: the evaluation; its budget limits the calls.
        provider: the provider to ask. If nobody may be asked, only the journal and in-process providers answer.
        calls: the planned calls as (case, number of calls); not read for in-process providers, which cache nothing.
    """
    version, track = inputs.version, inputs.track
    limit = shared_limit(version)
    limit.start(version.concurrency)
    asks = inputs.run.asks or isinstance(provider, Immediate)
    budget = budget_of(inputs.anew(run=replace(inputs.run, asks=asks)))
    journal = state_place().journal(inputs.workspace.home.journal, inputs.lease)
    try:
        batches = _queue(inputs, provider, journal) if version.batch and asks else None
        opened: AbstractAsyncContextManager[object] = provider if asks else nullcontext()
        async with opened, open_executor(inputs) as executor, _acting(provider, version, asks=asks) as act:
            kind = ImmediateCaller if isinstance(provider, Immediate) and not budget.limited else Caller
            caller = kind(provider, journal, version, inputs.run.epoch, limit=limit, budget=budget, batches=batches)
            caller.counters = inputs.counts
            damage = inputs.workspace.fingerprints.of(*damage_code(track)).code
            uses = {} if isinstance(provider, Immediate) else prefix_uses(track, calls)
            try:
                failed = {} if asks else failed_calls(inputs)
                yield Asker(
                    track,
                    inputs.suite,
                    caller,
                    executor,
                    uses,
                    provider.recorded,
                    damage,
                    partial(validation_kept, inputs),
                    failed,
                    provider.prompt_shown,
                    act,
                )
            finally:
                if batches is not None:
                    await batches.close()
    finally:
        journal.close()
        budget.close()


def _queue(inputs: Inputs, provider: Provider, journal: Journal) -> "BatchQueue":
    from eval_pipeline.asking.batches.queue import BatchQueue
    from eval_pipeline.asking.batches.work import Pace

    return BatchQueue(provider, journal, inputs.version, pace=PACE or Pace(), watch=_BatchBars(inputs))


@asynccontextmanager
async def _acting(provider: Provider, version: ModelVersion, *, asks: bool) -> AsyncIterator[Attempting | None]:
    """Yields somebody's program with the way to its models, if it makes the attempts of agents; else None."""
    if not traits_of(version.provider).own_agent:
        yield None
        return
    from eval_pipeline.providers.command import CommandProvider
    from eval_pipeline.stages.attempts.agents.programs import run_program

    if not isinstance(provider, CommandProvider):  # a plug-in's, which our own loop runs
        yield None
    elif not asks:
        yield partial(run_program, None, None)
    else:
        from eval_pipeline.asking.proxy.upstreams import Upstreams

        async with Upstreams(provider.upstream, version) as upstreams:
            yield partial(run_program, provider.program, upstreams)


def singly(asker: Asker) -> Asker:
    """Returns an asker that makes each call singly and at once, even if batches are enabled."""
    return replace(asker, caller=asker.caller.without_batches())


def failed_calls(inputs: Inputs) -> dict[FailedCall, CallFailure]:
    """Returns the recorded calls without a response, with their failures."""
    tables = [table for table in (GENERATIONS, RECOVERY_ATTEMPTS) if inputs.header(table)]
    loaded = (load_attempts(part, table, CALL_ERROR) for part in inputs.parts() for table in tables)
    made = (attempt for attempts in loaded for _, attempt in attempts)
    return {(a.turn_id, a.sample, a.number, a.prompt_hash): a.call_failure for a in made if a.call_failure}


async def ask_together(
    items: Iterable[T],
    count: int,
    version: ModelVersion,
    asker: Asker,
    ask: Callable[[Sequence[T]], Awaitable[None]],
) -> None:
    """Asks independent items concurrently.

    If answers come at once, each call of `ask` gets many items; otherwise one at a time, with many workers.
    """
    size = asker.caller.together if asker.executor.immediate else 1
    workers = _IMMEDIATE_WORKERS if size > 1 else _MOST_IN_BATCHES if version.batch else version.concurrency
    waiting = iter(items)

    async def work() -> None:
        while group := list(islice(waiting, size)):
            await ask(group)

    await run_together([work() for _ in range(min(workers, count))], asker.caller.end)


def asking_facts(inputs: Inputs) -> dict[str, Json]:
    """Returns a stage's facts about its calls."""
    version, counts = inputs.version, inputs.counts
    facts = calls_told(counts) | {"journal_hits": counts.journal_hits, "call_errors": counts.failures}
    if counts.refused:
        facts["refused_by_budget"] = counts.refused
    facts |= limit_facts(inputs)
    if counts.answered and traits_of(version.provider).charged:
        limit = shared_limit(version)
        facts |= {"tokens_spent": counts.tokens, "usd_spent": counts.usd}
        facts |= {"in_flight_limit": limit.limit, "in_flight_limit_lowest": int(limit.lowest)}
    return facts


def calls_told(counts: Counters) -> dict[str, Json]:
    """Returns a stage's facts about calls, and of those that failed and were made again."""
    facts: dict[str, Json] = {"calls": counts.calls}
    if counts.retried:
        facts["calls_made_again"] = errors_text(made_again(counts), "call", "calls")
    return facts


async def run_together(
    workers: Sequence[Coroutine[None, None, None]], end: Callable[..., Awaitable[None]] | None = None
) -> None:
    """Runs workers until all are done; the first failure cancels the others and is raised unchanged.

    Args:
        workers: what is run.
        end: awaited before the others are cancelled: after a failure, and with `interrupted=True` when this is
            cancelled for the first time.
    """
    failures: list[BaseException] = []

    async def noting(worker: Coroutine[None, None, None]) -> None:
        try:
            await worker
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            failures.append(error)
            raise

    tasks = [asyncio.create_task(noting(worker)) for worker in workers]
    try:
        if tasks:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        if failures and end is not None:
            await end()
    except asyncio.CancelledError:
        if end is not None:
            await end(interrupted=True)
        raise
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if failures:
        raise failures[0]


@dataclass(frozen=True, slots=True)
class _BatchBars:
    """Shows the batches being waited for as progress bars."""

    inputs: Inputs

    def waiting(self, what: str) -> None:
        self.inputs.progress.start(self.inputs.label(what), 0)
        if self.inputs.run.watch is not None:
            self.inputs.run.watch.status.waiting.append(what)

    def over(self, what: str) -> None:
        self.inputs.progress.finish(self.inputs.label(what))
        if self.inputs.run.watch is not None:
            self.inputs.run.watch.status.waiting.remove(what)
