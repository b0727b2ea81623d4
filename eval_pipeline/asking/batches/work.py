"""The operations on one batch: submit it, find it again after a crash, wait for it, collect its results."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import TypeVar

from eval_pipeline.asking.batches.intents import BatchIntents, Intent, State
from eval_pipeline.asking.batches.watch import BatchWatch, Unwatched, shown
from eval_pipeline.asking.journal.codec import FirstAsker, decode_response, encode_response
from eval_pipeline.asking.journal.port import Journal
from eval_pipeline.core.model import CallErrorKind, Response
from eval_pipeline.core.shown import duration
from eval_pipeline.providers.base import Batch, BatchProvider, Call, CallError, FatalCallError

_log = logging.getLogger(__name__)
_AT_ONCE = 256
"""Number of results written to the journal in one commit."""
_FAILURES_TOLD = 3
"""Number of consecutive failures after which a warning is logged; single failures are normal."""

T = TypeVar("T")
Tell = Callable[[str, Response | CallError], None]


@dataclass(frozen=True, slots=True)
class Pace:
    """Time limits and pauses for batches, in seconds.

    Attributes:
        linger_s: a batch is closed when no call has arrived for that long.
        first_poll_s, longest_poll_s, growth: first and longest pause between polls of a batch, and their growth factor.
        deadline_s: time limit for a batch, counted from its intent; endpoints end a batch after a day.
        submit_s: time limit for submitting one batch, which may be hundreds of megabytes.
        patience_s: how long to retry when an endpoint does not accept a batch or does not report its state.
        listed_after_s: after this time, an accepted batch is certainly in the provider's list.
        clocks_differ_s: maximum difference between our clock and the provider's.
        close_s: how long the end of a run waits for results that are just arriving.
    """

    linger_s: float = 0.1
    first_poll_s: float = 1.0
    longest_poll_s: float = 60.0
    growth: float = 1.5
    deadline_s: float = 25 * 3600.0
    submit_s: float = 600.0
    patience_s: float = 900.0
    listed_after_s: float = 20.0
    clocks_differ_s: float = 3600.0
    close_s: float = 5.0


class BatchWork:
    """Processes batches with one provider. Its methods raise CallError if the provider does not cooperate."""

    def __init__(
        self,
        provider: BatchProvider,
        journal: Journal,
        intents: BatchIntents,
        pace: Pace,
        watch: BatchWatch | None = None,
    ) -> None:
        self._watch = watch or Unwatched()
        self._provider = provider
        self._journal = journal
        self._intents = intents
        self._pace = pace

    async def hand_in(self, intent: Intent, calls: Mapping[str, Call]) -> str:
        """Submits a batch whose intent is written down, and returns its id after writing that down too.

        If it is unclear whether the endpoint accepted the batch, its list of batches is searched before anything is
        sent again.

        Raises:
            StoreError: another process has taken the intent over.
            CallError, FatalCallError: the endpoint does not accept the batch. The intent is then closed, unless it is
                unclear whether the endpoint accepted it after all: the next run then searches for the batch.
        """
        pause, give_up = self._pace.first_poll_s, intent.created_at + timedelta(seconds=self._pace.patience_s)
        for failures in count(1):
            await asyncio.to_thread(self._intents.require_mine, intent)
            try:
                async with asyncio.timeout(self._pace.submit_s):
                    batch_id = (await self._provider.submit_batch(calls)).id
                break
            except CallError as error:
                problem = error
            except TimeoutError:
                told = f"the endpoint did not take the batch within {self._pace.submit_s:g} s"
                problem = CallError(CallErrorKind.TIMEOUT, told, retryable=True)
            except FatalCallError:
                await asyncio.to_thread(self._intents.close, intent.id, State.REFUSED)
                raise
            # It is certain that the batch was not accepted if it was never sent or was rejected.
            if problem.retryable and problem.sent and problem.kind is not CallErrorKind.RATE_LIMITED:
                found = await self.find(intent, give_up)
                if found is not None:
                    return found
            pause = max(pause, problem.retry_after or 0.0)
            if not problem.retryable or _in(pause) > give_up:
                await asyncio.to_thread(self._intents.close, intent.id, State.REFUSED)
                raise problem
            _tell_of(failures, problem, give_up)
            await asyncio.sleep(pause)
            pause = min(pause * self._pace.growth, self._pace.longest_poll_s)
        await self._handed_in(intent, batch_id)
        _log.info("batch %s with %d requests handed in", batch_id, len(intent.keys))
        return batch_id

    async def find(self, intent: Intent, give_up: datetime | None = None) -> str | None:
        """Searches the provider's list for the batch of an intent; returns its id, or None if there is none.

        A batch in the list is the right one if it has as many requests and its results have their ids, which can be
        checked only after it has ended. While a possible match is running, this waits for its end, but not past the
        batch's deadline: waiting costs only time, which users of batches have, but submitting again would cost the
        money twice.

        Args:
            intent: owned by this process, and no longer being submitted by any other.
            give_up: until when to retry if the endpoint does not answer; by default for `patience_s`.

        Raises:
            CallError: the endpoint does not answer, or a possible match has not ended by the deadline.
        """
        with shown(self._watch, f"looking whether the endpoint has batch {intent}"):
            return await self._look_for(intent, give_up or _in(self._pace.patience_s))

    async def _look_for(self, intent: Intent, give_up: datetime) -> str | None:
        # A batch may appear in the list only some time after it was accepted, which may have been just now.
        certain = _in(self._pace.listed_after_s)
        pause = self._pace.first_poll_s
        others: set[str] = set()
        while True:
            looked_at = _in(0)
            under_way: list[str] = []
            for listed in await self._patiently(give_up, partial(self._candidates, intent)):
                # It is also requested by its id: the list includes batches whose results were deleted.
                batch = None
                if listed.id not in others:
                    batch = await self._patiently(give_up, partial(self._provider.batch, listed.id))
                if batch is None:
                    continue
                if not batch.ended:
                    under_way.append(batch.id)
                    continue
                if await self._patiently(give_up, partial(self._holds, intent, batch)):
                    await self._handed_in(intent, batch.id)
                    _log.info("batch %s found again", batch.id)
                    return batch.id
                others.add(batch.id)
            if not under_way and looked_at >= certain:
                return None
            if under_way and looked_at >= self._deadline(intent):
                told = f"{', '.join(under_way)} may be a batch that is looked for, and had not ended after"
                raise CallError(CallErrorKind.TIMEOUT, f"{told} {duration(self._pace.deadline_s)}")
            await asyncio.sleep(pause)
            pause = min(pause * self._pace.growth, self._pace.longest_poll_s)
            give_up = max(give_up, _in(self._pace.patience_s)) if under_way else give_up

    async def _candidates(self, intent: Intent) -> list[Batch]:
        """Returns unknown batches with the right number of requests that were created when this one could have been."""
        differ = timedelta(seconds=self._pace.clocks_differ_s)
        since = intent.created_at - differ
        until = intent.created_at + timedelta(seconds=self._pace.patience_s + self._pace.submit_s) + differ
        known = await asyncio.to_thread(self._intents.batch_ids)
        return [
            batch
            async for batch in self._provider.batches(since)
            if batch.requests == len(intent.keys) and batch.id not in known and batch.created_at <= until
        ]

    async def _holds(self, intent: Intent, batch: Batch) -> bool:
        missing = set(intent.keys)
        async with aclosing(self._provider.batch_results(batch.id)) as results:
            async for key, _ in results:
                if key not in missing:
                    return False
                missing.discard(key)
        return not missing

    async def _handed_in(self, intent: Intent, batch_id: str) -> None:
        # Shielded, so that the id is written even if this task is cancelled.
        await asyncio.shield(asyncio.to_thread(self._intents.handed_in, intent.id, batch_id))

    async def wait(self, intent: Intent, batch_id: str) -> bool:
        """Waits until a batch has ended; returns False if the provider does not know it (any more)."""
        pause = self._pace.first_poll_s
        certain = _in(self._pace.listed_after_s)
        while True:
            looked_at = _in(0)
            batch = await self._patiently(self._patience(intent), lambda: self._provider.batch(batch_id))
            if batch is not None and batch.ended:
                return True
            if batch is None and looked_at >= certain:
                return False
            if batch is not None and _in(pause) >= self._deadline(intent):
                told = f"the batch {batch_id} had not ended after {duration(self._pace.deadline_s)}"
                raise CallError(CallErrorKind.TIMEOUT, f"{told}; the next run looks for it again")
            await asyncio.sleep(pause)
            pause = min(pause * self._pace.growth, self._pace.longest_poll_s)

    async def collect(self, intent: Intent, batch_id: str, tell: Tell) -> None:
        """Writes the results of an ended batch to the journal, and passes each on as soon as it is durable."""
        await self._patiently(self._patience(intent), lambda: self._collect_once(intent, batch_id, tell))
        await asyncio.to_thread(self._intents.close, intent.id, State.COLLECTED)
        _log.info("batch %s collected", batch_id)

    async def _collect_once(self, intent: Intent, batch_id: str, tell: Tell) -> None:
        asked_on = intent.created_at.date().isoformat()
        async with aclosing(self._provider.batch_results(batch_id)) as results, aclosing(_groups(results)) as groups:
            async for group in groups:
                await self._record(group, asked_on, tell)

    async def _record(self, group: Mapping[str, Response | CallError], asked_on: str, tell: Tell) -> None:
        answered = {key: told for key, told in group.items() if isinstance(told, Response)}
        stamped = {
            key: replace(response, batch=True, asked_on=response.asked_on or asked_on)
            for key, response in answered.items()
        }
        asker = FirstAsker("", self._intents.model_version)  # the suite is known only for batches of this process
        fresh = await asyncio.gather(
            *(self._journal.append(key, encode_response(response, asker)) for key, response in stamped.items())
        )
        for (key, response), new in zip(stamped.items(), fresh, strict=True):
            # The response recorded first counts, because a restart would find that one.
            tell(key, response if new else self.recorded(key) or response)
        for key, told in group.items():
            if isinstance(told, CallError):
                tell(key, told)

    def recorded(self, key: str) -> Response | None:
        """Returns the response recorded in the journal under a key, if any."""
        body = self._journal.get(key)
        return None if body is None else decode_response(body)

    async def _patiently(self, give_up: datetime, ask: Callable[[], Awaitable[T]]) -> T:
        """Calls the provider, retrying after temporary failures; unreadable answers are retried for a shorter time."""
        pause, unreadable = self._pace.first_poll_s, min(give_up, _in(self._pace.patience_s))
        for failures in count(1):
            try:
                return await ask()
            except CallError as error:
                pause = max(pause, error.retry_after or 0.0)
                until = unreadable if error.kind is CallErrorKind.BAD_RESPONSE else give_up
                if not error.retryable or _in(pause) >= until:
                    raise
                _tell_of(failures, error, until)
            await asyncio.sleep(pause)
            pause = min(pause * self._pace.growth, self._pace.longest_poll_s)
        raise AssertionError("there is always another try")

    def _deadline(self, intent: Intent) -> datetime:
        return intent.created_at + timedelta(seconds=self._pace.deadline_s)

    def _patience(self, intent: Intent) -> datetime:
        # Also after the deadline: when a batch of days ago is collected, the first try may fail.
        return max(self._deadline(intent), _in(self._pace.patience_s))


def _tell_of(failures: int, error: CallError, until: datetime) -> None:
    if failures == _FAILURES_TOLD:
        _log.warning(
            "batches: the endpoint failed %d times in a row (%s); it is asked again until %s UTC",
            failures,
            error.message,
            f"{until:%Y-%m-%d %H:%M}",
        )


def _in(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


async def _groups(
    results: AsyncGenerator[tuple[str, Response | CallError], None],
) -> AsyncGenerator[dict[str, Response | CallError], None]:
    group: dict[str, Response | CallError] = {}
    broken: CallError | None = None
    try:
        async for key, told in results:
            group[key] = told
            if len(group) == _AT_ONCE:
                yield group
                group = {}
    except CallError as error:
        broken = error  # the results before it are paid for and valid
    if group:
        yield group
    if broken is not None:
        raise broken
