"""What has to be done with one batch: hand it in, find it again after a kill, wait for it, collect it."""

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
from eval_pipeline.asking.journal.codec import Asker, decode_response, encode_response
from eval_pipeline.asking.journal.sqlite import Journal
from eval_pipeline.core.model import CallErrorKind, Response
from eval_pipeline.providers.base import Batch, BatchProvider, Call, CallError, FatalCallError

_log = logging.getLogger(__name__)
_AT_ONCE = 256
"""Results journalled together: they share a commit."""
_FAILURES_TOLD = 3
"""Failures in a row after which the log tells of them: single ones are nothing special."""

T = TypeVar("T")
Tell = Callable[[str, Response | CallError], None]


@dataclass(frozen=True, slots=True)
class Pace:
    """How long is waited for what, in seconds.

    Attributes:
        linger_s: a batch is closed when no call came for that long.
        first_poll_s, longest_poll_s, growth: pauses between looks at a batch; they grow up to the longest.
        deadline_s: for a batch, from its intent on; endpoints end one after a day.
        submit_s: for handing in one batch, which may be some hundred megabytes.
        patience_s: an endpoint that takes no batch, or does not tell of one, is asked again for that long.
        listed_after_s: the provider knows a batch that it accepted by then, and has it in its list.
        clocks_differ_s: at most, between here and there.
        close_s: results that are just arriving when a run ends have that long.
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
    """Carries batches through with one provider. Its methods raise CallError where the provider does not help on."""

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
        """Hands a batch in whose intent is written down; returns its id, written down too.

        Where it is not known whether the endpoint took it, its list is looked through before anything is sent again.

        Raises:
            CallError, FatalCallError: the endpoint does not take it; the intent is closed, unless it is not known
                whether the endpoint did take it: the next run looks for it then.
        """
        pause, give_up = self._pace.first_poll_s, intent.created_at + timedelta(seconds=self._pace.patience_s)
        for failures in count(1):
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
            # Whether it was taken is known where it was not even sent, or turned away.
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
        """The id of the batch that an intent became, or None where the endpoint has none.

        A batch in the provider's list is the one if it has as many requests and its results have their ids; for that it
        has to have ended. While one that may be it is under way its end is waited for, until the batch's deadline at
        most: to wait costs time that who asks in batches has, to hand in again costs the money twice.

        Args:
            intent: of this process; handed in by nobody any more.
            give_up: an endpoint that does not answer is asked again until then; by default for `patience_s`.

        Raises:
            CallError: the endpoint does not tell, or what may be the batch has not ended at the deadline.
        """
        with shown(self._watch, f"looking whether the endpoint has batch {intent}"):
            return await self._look_for(intent, give_up or _in(self._pace.patience_s))

    async def _look_for(self, intent: Intent, give_up: datetime) -> str | None:
        # It may be in the list only a while after it was taken, which may have been just now.
        certain = _in(self._pace.listed_after_s)
        pause = self._pace.first_poll_s
        others: set[str] = set()
        while True:
            looked_at = _in(0)
            under_way: list[str] = []
            for listed in await self._patiently(give_up, partial(self._candidates, intent)):
                # Asked for by itself too: the list also has those whose results were thrown away.
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
                raise CallError(CallErrorKind.TIMEOUT, f"{told} {self._pace.deadline_s / 3600:.3g} h")
            await asyncio.sleep(pause)
            pause = min(pause * self._pace.growth, self._pace.longest_poll_s)
            give_up = max(give_up, _in(self._pace.patience_s)) if under_way else give_up

    async def _candidates(self, intent: Intent) -> list[Batch]:
        """Batches of others, or of nobody here, that were made when this one could have been, with as many requests."""
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
        # Shielded: who is cancelled here still leaves the id.
        await asyncio.shield(asyncio.to_thread(self._intents.handed_in, intent.id, batch_id))

    async def wait(self, intent: Intent, batch_id: str) -> bool:
        """Waits until a batch has ended; False where the provider does not know it, or not any more."""
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
                told = f"the batch {batch_id} had not ended after {self._pace.deadline_s / 3600:.3g} h"
                raise CallError(CallErrorKind.TIMEOUT, f"{told}; the next run looks for it again")
            await asyncio.sleep(pause)
            pause = min(pause * self._pace.growth, self._pace.longest_poll_s)

    async def collect(self, intent: Intent, batch_id: str, tell: Tell) -> None:
        """Journals the results of a batch that has ended, and tells each as soon as it is durable."""
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
        stamped = {key: _stamped(response, asked_on) for key, response in answered.items()}
        asker = Asker("", self._intents.model_version)  # which suite asked is known of batches of this process only
        fresh = await asyncio.gather(
            *(self._journal.append(key, encode_response(response, asker)) for key, response in stamped.items())
        )
        for (key, response), new in zip(stamped.items(), fresh, strict=True):
            # What was recorded first is what a restart finds, so it is what counts.
            tell(key, response if new else self.recorded(key) or response)
        for key, told in group.items():
            if isinstance(told, CallError):
                tell(key, told)

    def recorded(self, key: str) -> Response | None:
        """What the journal holds under a key."""
        body = self._journal.get(key)
        return None if body is None else decode_response(body)

    async def _patiently(self, give_up: datetime, ask: Callable[[], Awaitable[T]]) -> T:
        """What the provider says, asked again after failures that pass; what cannot be read mostly stays so."""
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
        # After the deadline too: a batch of days ago may be collected where the first look at it fails.
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


def _stamped(response: Response, asked_on: str) -> Response:
    return replace(response, batch=True, asked_on=response.asked_on or asked_on)


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
        broken = error  # what came before is paid for and good
    if group:
        yield group
    if broken is not None:
        raise broken
