"""The caller: answers questions from the journal if possible, and writes new responses to the journal before use."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from dataclasses import replace
from datetime import date
from random import Random
from typing import TYPE_CHECKING, ClassVar, Self

from eval_pipeline.asking.answers import Answer, Answered, Counters, stamped, utc_today
from eval_pipeline.asking.budgets import NOTHING, Amount, Budget
from eval_pipeline.asking.journal.codec import FirstAsker, decode_response, encode_response
from eval_pipeline.asking.journal.port import Journal, journal_key
from eval_pipeline.asking.limits import AdaptiveLimit
from eval_pipeline.asking.on_the_way import OnTheWay, Way
from eval_pipeline.asking.retries import DeadlineError, Reachability, RetryPolicy, within
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.model import CallErrorKind, CallFailure, Json, Response
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Call, CallError, Provider

if TYPE_CHECKING:
    from eval_pipeline.asking.batches.queue import BatchQueue, Told


class Caller:
    """Asks one provider on behalf of one model version; lives as long as the event loop of one step of a run.

    The caller uses the provider but does not open or close it.

    Attributes:
        together: number of calls that should be passed to `ask_many` at once.
        version: the model version that asks.
    """

    together: ClassVar[int] = 1

    def __init__(
        self,
        provider: Provider,
        journal: Journal,
        version: ModelVersion,
        epoch: str = "",
        *,
        progress: Callable[[Counters], None] | None = None,
        retries: RetryPolicy | None = None,
        limit: AdaptiveLimit | None = None,
        budget: Budget | None = None,
        batches: "BatchQueue | None" = None,
        today: Callable[[], date] = utc_today,
    ) -> None:
        """Creates the caller without making any call.

        Args:
            provider: an open provider.
            journal: where responses are looked up and stored.
            version: the model version that asks.
            epoch: responses journalled under another epoch are not used.
            progress: called in the event loop after each finished question.
            retries: the retry policy.
            limit: limits the calls in flight. By default the caller has its own; pass a shared one if several callers
                use the same endpoint.
            budget: what the run may spend; by default the caller has its own budget.
            batches: queue for calls that need not be answered at once; if None, each call is made by itself.
            today: the clock, for tests.
        """
        self.counters = Counters()
        self._provider = provider
        self._journal = journal
        self.version = version
        self._epoch = epoch
        self._progress = progress
        self._deadline_s = version.deadline_s
        self._retries = retries or RetryPolicy()
        self._limit = limit or AdaptiveLimit(version.name, version.concurrency)
        self._budget = budget or Budget(version, today=today)
        self._batches = batches
        self._single = False
        self._today = today
        self._reachability = Reachability(version)
        self._rng = Random()  # only for jitter, which must differ between processes
        self._on_the_way = OnTheWay()
        self._under_way: dict[str, asyncio.Future[Answer | Exception | None]] = {}

    def key(self, call: Call) -> str:
        """Returns the journal key of a call; dry runs look it up."""
        version = self.version
        request = self._provider.request(call)
        return journal_key(version.provider, version.model, request, call.sample, self._epoch)

    def known(self, calls: Sequence[Call]) -> list[bool]:
        """Returns for each call whether the journal or an already submitted batch answers it. Raises StoreError."""
        keys = [self.key(call) for call in calls]
        recorded = self._journal.contains_many(keys)
        return [key in recorded or (self._batches is not None and self._batches.covers(key)) for key in keys]

    def without_batches(self) -> Self:
        """Returns a caller that asks singly and shares journal, limit, budget, counters and pending calls with it.

        It still waits for calls that are in a batch already, because they are paid for.
        """
        other = copy(self)
        other._single = True
        return other

    @property
    def needs_prices(self) -> bool:
        """Whether a limit is in dollars, so that no call is allowed whose price is unknown."""
        return self._budget.needs_prices

    def through(self, provider: Provider) -> Self:
        """Returns a caller that asks another provider, singly and without retries, and shares all else with it."""
        other = self.without_batches()
        other._provider, other._batches, other._retries = provider, None, RetryPolicy(max_retries=0)
        return other

    async def end(self, *, interrupted: bool = False) -> None:
        """Lets no further call start, and waits until those on their way are in the journal: they are paid for.

        It takes at most the version's deadline for a question; batches are paid for when they are handed in.

        Args:
            interrupted: whether a user waits for the end, who is told what for.
        """
        await self._on_the_way.landed(interrupted=interrupted)

    async def ask(self, call: Call) -> Answer:
        """Returns the answer to a call. Equal calls made at the same time share one answer.

        Returns:
            The response, which is durable in the journal, or the reason why there is none.

        Raises:
            FatalCallError: no call of this run can succeed.
            StoreError: the journal cannot be read or written.
        """
        answer = await self._answer(call)
        self._count(answer)
        return answer

    async def ask_many(self, calls: Sequence[Call]) -> list[Answer]:
        """Returns the answers to several calls, in order; see `ask`."""
        return [await self.ask(call) for call in calls]

    async def once(self, what: Json, call: Call, make: Callable[[], Awaitable[Response]]) -> Response:
        """Returns what was made for a call before, or makes it now and keeps it in the journal.

        Args:
            what: everything that tells it apart, with the call's turn and sample.
            call: the question that it belongs to.
            make: makes it; what it returns is kept as a response.

        Raises:
            StoreError: the journal cannot be read or written.
        """
        recorded = await self.made(what, call)
        if recorded is not None:
            return recorded
        made = await make()
        await self._journal.append(self._key_made(what, call), encode_response(made, self._asker(call)))
        return made

    async def made(self, what: Json, call: Call) -> Response | None:
        """Returns what `once` has made; None if it has not. Raises a StoreError."""
        return await self._recorded(self._key_made(what, call))

    def _key_made(self, what: Json, call: Call) -> str:
        version = self.version
        told = {"made": what, "suite": call.suite, "turn": call.turn_id, "number": call.number}
        return journal_key(version.provider, version.model, told, call.sample, self._epoch)

    async def recall(self, call: Call) -> Answer | None:
        """Returns what the journal has for a call that somebody else makes, or that none may be made any more.

        None if it is to be made, and then given to `keep`. Raises a StoreError.
        """
        recorded = await self._recorded(self.key(call))
        answer: Answer | None = None if recorded is None else Answered(recorded, from_journal=True)
        if answer is None and self._budget.reached:
            answer = self._budget.refusal
        if answer is not None:
            self._count(answer)
        return answer

    async def keep(self, call: Call, answer: Answer) -> Answer:
        """Journals an answer that somebody else made by calls that were counted; returns it. Raises a StoreError."""
        if isinstance(answer, Answered):
            await self._journal.append(self.key(call), encode_response(answer.response, self._asker(call)))
        return answer

    def _count(self, answer: Answer) -> None:
        match answer:
            case CallFailure(CallErrorKind.BUDGET):
                self.counters.refused += 1
            case CallFailure():
                self.counters.failures += 1
            case Answered(from_journal=True):
                self.counters.journal_hits += 1
            case Answered():
                self.counters.answered += 1
        if self._progress is not None:
            self._progress(self.counters)

    async def _answer(self, call: Call) -> Answer:
        key = self.key(call)
        while (shared := self._under_way.get(key)) is not None:
            told = await asyncio.shield(shared)
            if isinstance(told, Exception):
                raise told
            if told is not None:
                return told if isinstance(told, CallFailure) else replace(told, from_journal=True)
            # The task that was asking was cancelled, or has recorded several answers: look into the journal again.
        told = None
        self._under_way[key] = shared = asyncio.get_running_loop().create_future()
        try:
            recorded = await self._recorded(key)
            told = await self._ask_and_record(call, key) if recorded is None else Answered(recorded, from_journal=True)
            return told
        except Exception as error:
            told = error
            raise
        finally:
            del self._under_way[key]
            shared.set_result(told)

    async def _recorded(self, key: str) -> Response | None:
        body = await self._journal.find(key)
        return None if body is None else self._decoded(key, body)

    def _decoded(self, key: str, body: bytes) -> Response:
        try:
            return decode_response(body)
        except ValueError as error:
            raise StoreError(
                f"the journal {self._journal.place} has an unreadable entry under the key {key} ({error}); run "
                "`eval-pipeline doctor`, which says how to repair it"
            ) from error

    async def _ask_and_record(self, call: Call, key: str) -> Answer:
        if self._batches is not None and (not self._single or self._batches.covers(key)):
            answer = await self._ask_in_batch(call, key, self._batches)
            if answer is not None:
                return answer
        with self._on_the_way.place() as way:
            outcome = await self._ask_in_turn(call, key, way)
            if isinstance(outcome, CallFailure):
                return outcome
            if await self._journal.append(key, encode_response(outcome, self._asker(call))):
                return Answered(outcome, from_journal=False)
        # Another process has recorded an answer meanwhile. A restart would find that one, so use it.
        return Answered(await self._recorded(key) or outcome, from_journal=True)

    async def _ask_in_batch(self, call: Call, key: str, batches: "BatchQueue") -> Answer | None:
        """Returns the answer from a batch; None if the call has to be made singly."""
        told: Told | None = None
        while told is None:  # repeated when a batch is lost
            covered = batches.covers(key)  # in a batch of an earlier run, which is paid for
            reserved = NOTHING if covered else await self._budget.reserve(call, batch=True)
            if reserved is None:
                return self._budget.refusal
            try:
                told = await batches.ask(key, call)
            finally:
                if not covered:
                    self.counters.calls += 1
                    self._settle(reserved, told if isinstance(told, Response | CallFailure) else None)
        if isinstance(told, Response):
            return Answered(told, from_journal=covered)
        return told if isinstance(told, CallFailure) else None

    def _asker(self, call: Call) -> FirstAsker:
        return FirstAsker(call.suite, self.version.name)

    def _settle(self, reserved: Amount, outcome: Response | CallFailure | None) -> None:
        self._budget.settle(reserved, outcome)
        self.counters.tokens, self.counters.usd = self._budget.tokens, self._budget.usd
        self.counters.responses += isinstance(outcome, Response)

    async def _ask_in_turn(self, call: Call, key: str, way: Way) -> Response | CallFailure:
        """Asks as soon as the limit allows another call in flight."""
        async with self._limit:
            return await self._ask_with_retries(call, key, way)

    async def _ask_with_retries(self, call: Call, key: str, way: Way) -> Response | CallFailure:
        # The budget is asked only while holding a place of the limit. Whoever has reserved budget is then in flight or
        # holds a place, so the two cannot block each other.
        reserved = await self._budget.reserve(call)
        if reserved is None:
            return self._budget.refusal
        deadline = asyncio.get_running_loop().time() + self._deadline_s
        retries = 0
        while True:
            try:
                way.send()
            except asyncio.CancelledError:
                self._settle(reserved, None)
                raise
            outcome = await self._try(call, reserved, deadline)
            if isinstance(outcome, Response):
                return self._stamped(outcome, retries)
            if outcome is None:
                return CallFailure(CallErrorKind.TIMEOUT, f"no answer within {self._deadline_s:g} s", retries)
            self._reachability.failed(key, retries + 1, outcome, self._limit.limit)
            pause = self._retries.pause(outcome, retries, self._rng)
            if pause is None or asyncio.get_running_loop().time() + pause >= deadline:
                return CallFailure(outcome.kind, outcome.message, retries)
            self.counters.note_retry(outcome.kind.value, f"{call.turn_id}: {outcome.message}")
            await way.pause(pause)
            reserved = await self._budget.reserve(call)
            if reserved is None:
                why = self._budget.refusal.message.removeprefix("not asked: ")
                told = f"not asked again after a failure ({outcome.message}): {why}"
                return CallFailure(CallErrorKind.BUDGET, told, retries)
            retries += 1
            self.counters.retries += 1

    async def _try(self, call: Call, reserved: Amount, deadline: float) -> Response | CallError | None:
        """Makes one try and settles its cost; returns None if the question's deadline ended it."""
        self.counters.calls += 1
        began = self._limit.began()
        cost: Response | CallFailure | None = None
        try:
            cost = response = await within(deadline, self._provider.generate(call))
            self._limit.succeeded()
            self._reachability.answered()
            return response
        except CallError as error:
            cost = CallFailure(error.kind, error.message) if error.sent else None
            self._limit.failed(error.kind, began)
            return error
        except DeadlineError:
            cost = CallFailure(CallErrorKind.TIMEOUT, "no answer in time")
            return None
        finally:
            self._settle(reserved, cost)

    def _stamped(self, response: Response, retries: int) -> Response:
        return stamped(response, retries, self._today)
