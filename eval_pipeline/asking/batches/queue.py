"""The queue that collects calls into batches, submits them, and answers the calls when the batches have ended."""

import asyncio
from collections.abc import Iterable, Mapping

from eval_pipeline.asking.batches.intents import BatchIntents, Intent, State
from eval_pipeline.asking.batches.watch import BatchWatch, Unwatched, shown
from eval_pipeline.asking.batches.work import BatchWork, Pace
from eval_pipeline.asking.journal.port import Journal
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import CallErrorKind, CallFailure, Response
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import BatchProvider, Call, CallError, Provider

_BYTES_A_REQUEST = 128
"""Bytes that a batch adds to each request: its custom id and field names."""

Told = Response | CallError | CallFailure
"""The answer to a queued call.

It is a response, now in the journal; a CallError if the batch has none (the call may be made singly); or a CallFailure
if the call must not be made now.
"""


class BatchQueue:
    """Collects the calls of one model version into batches; lives as long as the event loop of one step of a run.

    A batch is closed when it is full, or when no further call has arrived for a short while, which means that everybody
    who could ask is waiting. A call that is already in a batch of an earlier run (which was killed, for example) waits
    for that batch.
    """

    def __init__(
        self,
        provider: Provider,
        journal: Journal,
        version: ModelVersion,
        *,
        pace: Pace | None = None,
        watch: BatchWatch | None = None,
    ) -> None:
        """Reads which batches are open, without contacting the provider.

        Raises:
            StoreError: the journal cannot be read.
            TypeError: the provider does not support batches.
        """
        if not isinstance(provider, BatchProvider):
            raise TypeError(f"the provider '{version.provider}' has no batches")
        self._provider = provider
        self._requests = provider.request
        self._most_requests, self._most_bytes = provider.max_batch_requests, provider.max_batch_bytes
        self._pace, self._watch = pace or Pace(), watch or Unwatched()
        self._intents = BatchIntents(journal.batches, version)
        self._work = BatchWork(provider, journal, self._intents, self._pace, self._watch)
        self._covered: dict[str, Intent] = {}  # journal key → the open batch that contains it
        self._tasks: dict[str, asyncio.Task[None]] = {}  # by id of the intent
        self._beginning: set[asyncio.Task[None]] = set()
        self._collecting: set[str] = set()
        self._waiting: dict[str, asyncio.Future[Told | None]] = {}
        self._queued: dict[str, Call] = {}
        self._queued_bytes = 0
        self._last_arrival = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._learn_of_open(journal)

    def covers(self, key: str) -> bool:
        """Whether the call is in a batch that was submitted earlier, so that waiting for it costs nothing more."""
        return key in self._covered

    async def ask(self, key: str, call: Call) -> Told | None:
        """Returns the answer to a call; None if its batch was lost and the call must be made again.

        Only one caller at a time may ask for a key.

        Raises:
            FatalCallError: no call of this run can succeed.
            StoreError: the journal cannot be read or written.
        """
        place: asyncio.Future[Told | None] = asyncio.get_running_loop().create_future()
        self._waiting[key] = place
        covering = self._covered.get(key)
        if covering is None:
            self._enqueue(key, call)
        else:
            self._attend(covering, {})
        try:
            return await place
        finally:
            self._waiting.pop(key, None)
            self._queued.pop(key, None)

    async def close(self) -> None:
        """Stops the queue; results that are just being collected get a few seconds to reach the journal.

        All other results are collected by the next run.
        """
        if self._timer is not None:
            self._timer.cancel()
        collecting = [task for intent, task in self._tasks.items() if intent in self._collecting]
        if collecting:
            await asyncio.wait(collecting, timeout=self._pace.close_s)
        rest = [*self._tasks.values(), *self._beginning]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    def _learn_of_open(self, journal: Journal) -> None:
        for intent in self._intents.open():
            if journal.contains_many(intent.keys) == intent.keys:
                self._intents.close(intent.id, State.COLLECTED)  # asked singly meanwhile, or killed before closing
            else:
                self._covered |= dict.fromkeys(intent.keys, intent)

    def _enqueue(self, key: str, call: Call) -> None:
        size = len(json_text(self._requests(call))) + _BYTES_A_REQUEST
        if self._queued and self._queued_bytes + size > self._most_bytes:
            self._begin()
        self._queued[key] = call
        self._queued_bytes += size
        if len(self._queued) >= self._most_requests:
            self._begin()
        self._linger()

    def _linger(self) -> None:
        loop = asyncio.get_running_loop()
        self._last_arrival = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self._pace.linger_s, self._look)

    def _look(self) -> None:
        """Closes the batch if no call arrived for a while and no results are being read, which could lead to calls."""
        self._timer = None
        if not self._queued or self._collecting:
            return
        loop = asyncio.get_running_loop()
        left = self._last_arrival + self._pace.linger_s - loop.time()
        if left > 0:
            self._timer = loop.call_later(left, self._look)
        else:
            self._begin()

    def _begin(self) -> None:
        calls, self._queued, self._queued_bytes = self._queued, {}, 0
        task = asyncio.get_running_loop().create_task(self._submit(calls))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    async def _submit(self, calls: Mapping[str, Call]) -> None:
        try:
            intent = await asyncio.to_thread(self._intents.claim, calls)
            if intent is not None:
                self._attend(intent, {key: call for key, call in calls.items() if key in intent.keys})
            taken = calls.keys() - (intent.keys if intent else ())
            if taken:  # claimed by another process since this one looked
                for other in await asyncio.to_thread(self._intents.open):
                    self._covered |= dict.fromkeys(other.keys, other)
                self._tell_all(taken, None)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._fail_all(calls, error)

    def _attend(self, intent: Intent, calls: Mapping[str, Call]) -> None:
        """Starts the task that handles a batch, unless it is running already."""
        if intent.id not in self._tasks:
            self._covered |= dict.fromkeys(intent.keys, intent)
            task = asyncio.get_running_loop().create_task(self._carry_through(intent, calls))
            self._tasks[intent.id] = task

    async def _carry_through(self, intent: Intent, calls: Mapping[str, Call]) -> None:
        outcome: Told | BaseException | None = None
        try:
            batch_id = await self._batch_id(intent, calls)
            known = batch_id is not None and await self._collect(intent, batch_id)
            if known:
                outcome = CallError(CallErrorKind.BAD_RESPONSE, f"the batch {batch_id} ended without a result for it")
            elif calls:
                # The intent stays open. Submitting the same calls again now could go on forever and be charged each
                # time.
                told = f"the endpoint took the batch {batch_id} and does not know it; the next run looks for it again"
                outcome = CallFailure(CallErrorKind.BAD_RESPONSE, told)
            elif batch_id is not None:
                await asyncio.to_thread(self._intents.close, intent.id, State.LOST)
        except CallError as error:
            outcome = CallFailure(error.kind, error.message)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # the waiting callers must be told of any error
            outcome = error
        finally:
            self._collecting.discard(intent.id)
            self._covered = {key: held for key, held in self._covered.items() if held.id != intent.id}
            del self._tasks[intent.id]
        if isinstance(outcome, BaseException) and not isinstance(outcome, CallError):
            self._fail_all(intent.keys, outcome)
        else:
            self._tell_all(intent.keys, outcome)
        self._linger()

    async def _batch_id(self, intent: Intent, calls: Mapping[str, Call]) -> str | None:
        """Returns the id of an intent's batch, submitting or finding it.

        Returns None, and closes the intent, if there is none.
        """
        if calls:
            return await self._work.hand_in(intent, calls)
        free = await self._when_free(intent)
        if free is None:
            return None
        batch_id = free.batch_id or await self._work.find(free)
        if batch_id is None:
            await asyncio.to_thread(self._intents.close, intent.id, State.LOST)
        return batch_id

    async def _when_free(self, intent: Intent) -> Intent | None:
        """Waits until the batch has an id or this process owns it, and returns the intent.

        None if it was closed meanwhile.
        """
        if intent.batch_id is not None or await asyncio.to_thread(self._intents.take_over, intent):
            return intent
        with shown(self._watch, f"waiting for another process that hands in batch {intent}"):
            while True:
                await asyncio.sleep(self._pace.first_poll_s)
                now_open = {found.id: found for found in await asyncio.to_thread(self._intents.open)}
                now = now_open.get(intent.id)
                if now is None or now.batch_id is not None or await asyncio.to_thread(self._intents.take_over, now):
                    return now

    async def _collect(self, intent: Intent, batch_id: str) -> bool:
        """Waits for a batch and writes its results to the journal.

        Returns False if the provider no longer knows the batch.
        """
        with shown(self._watch, f"waiting for batch {batch_id} ({len(intent.keys):,} requests)"):
            known = await self._work.wait(intent, batch_id)
            if known:
                self._collecting.add(intent.id)
                await self._work.collect(intent, batch_id, self._tell)
            return known

    def _tell(self, key: str, told: Told | None) -> None:
        place = self._waiting.pop(key, None)
        if place is not None and not place.done():
            place.set_result(told)

    def _tell_all(self, keys: Iterable[str], told: Told | None) -> None:
        for key in keys:
            if key in self._waiting:
                # A result may have arrived after the caller looked into the journal but before it waited.
                self._tell(key, self._work.recorded(key) or told)

    def _fail_all(self, keys: Iterable[str], error: BaseException) -> None:
        for key in keys:
            place = self._waiting.pop(key, None)
            if place is not None and not place.done():
                place.set_exception(error)
