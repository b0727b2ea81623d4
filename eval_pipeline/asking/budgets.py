"""The budget of one run of a model version: no call is made that could exceed it."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import CallErrorKind, CallFailure, Response, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.shown import dollars
from eval_pipeline.providers.base import Call
from eval_pipeline.providers.prices import cost_usd
from eval_pipeline.providers.registry import traits_of

if TYPE_CHECKING:
    from eval_pipeline.asking.permits import Permits
    from eval_pipeline.asking.spending.purse import Purse

_REACHED = CallFailure(CallErrorKind.BUDGET, "not asked: the budget of the run was reached")

MAY_HAVE_COST = frozenset({CallErrorKind.TIMEOUT, CallErrorKind.CONNECTION, CallErrorKind.BAD_RESPONSE})
"""Failures after which the endpoint may have produced and charged for an answer that we did not see."""

_TOKENS_A_CALL, _TOKENS_A_MESSAGE = 512, 16
"""Upper bounds on tokens that endpoints add to a prompt.

They add instructions for the answer form, and markers around messages.
"""


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of tokens and their cost in US dollars, if known; `is_guess`: learned from earlier calls."""

    tokens: int
    usd: float | None
    is_guess: bool = field(default=False, compare=False)


NOTHING = Amount(0, None)


_LEAST = Amount(1, 1e-9, is_guess=True)
"""The least that any call costs: if nothing is left of the budget, not even this fits."""


@dataclass(slots=True)
class _Waiter:
    """A call waiting for permission; `most` is its maximum cost, or None if that is unknown."""

    most: Amount | None
    place: "asyncio.Future[bool]"
    reserved: Amount = NOTHING


class Budget:
    """Tracks the cost of calls and holds back those that could exceed a limit: the model version's, or a shared one.

    Each call reserves the most that it could cost. The sum of all reservations and of what was spent stays within the
    limits. A call that does not fit waits while others are in flight, since most calls cost less than they reserved. If
    none is in flight, the budget is reached and no more calls are made.

    Attributes:
        limited: whether there are limits; without limits, every call is allowed.
        needs_prices: whether a limit is in dollars, so that no call is allowed whose price is unknown.
        before: spent by earlier steps of the run.
        tokens, usd: spent since then; `usd` is None if no call had a price.
        reached: whether a call was refused, here or in an earlier step.

    The cost of an application that makes its own prompts cannot be predicted. Its first call is made alone, and each
    later call reserves as much as the most expensive one so far. The limits can therefore be exceeded by as much as the
    calls in flight cost more than that one.
    """

    def __init__(
        self,
        version: ModelVersion,
        before: Amount = NOTHING,
        *,
        reached: bool = False,
        closed: bool = False,
        permits: "Permits | None" = None,
        purse: "Purse | None" = None,
        today: Callable[[], date],
    ) -> None:
        """Starts without reservations.

        Args:
            version: the model version whose limits apply.
            before: spent by earlier steps of the run.
            reached: whether the budget was already reached in an earlier step.
            closed: allow no call at all.
            permits: asked before each call whether this run may still pay; None where only this host could.
            purse: what the run holds of the limit that it shares with others; None without such a limit.
            today: returns the day for which prices are looked up.
        """
        self.before, self.reached = before, reached or closed
        self.tokens = 0
        self.usd: float | None = None
        self._version = version
        self._permits = permits
        self._purse = purse
        self._emptied = False
        self._today = today
        limits = (version.max_cost_usd, version.max_tokens_total, purse)
        self.needs_prices = version.max_cost_usd is not None or purse is not None
        self.limited = closed or any(limit is not None for limit in limits)
        self._dearest: Amount | None = None
        self._in_flight = 0
        self._reserved_tokens, self._reserved_usd = 0, 0.0
        self._waiting: deque[_Waiter] = deque()

    @cached_property
    def _learns(self) -> bool:
        return traits_of(self._version.provider).own_prompt

    async def reserve(self, call: Call, *, batch: bool = False) -> Amount | None:
        """Reserves the most that a call could cost; returns None if the call must not be made.

        The returned amount must be passed to `settle`, whatever happens to the call.

        Raises:
            UsageError: its price is unknown, and it has to be within a limit that is shared with others.
            StoreError: another run has taken the place of this one, which must not pay.
        """
        reserved = await self._reserve(call, batch=batch)
        if self._purse is not None:
            if reserved is not None and not await self._claimed(reserved, self._purse):
                self.reached = self._emptied = True
                self._release(reserved)
                reserved = None
            if reserved is None and self._emptied:
                self._purse.refuse()
        if reserved is not None and self._permits is not None:
            try:
                await self._permits.ask(reserved.tokens, reserved.usd or 0.0)
            except BaseException:
                self.settle(reserved, None)
                raise
        return reserved

    @property
    def refusal(self) -> CallFailure:
        """The answer to a call for which nothing could be reserved."""
        if self._purse is None or not self._emptied:
            return _REACHED
        limit = self._purse.limit
        told = f"not asked: the limit of {dollars(limit.usd)} of the {limit.kind} was reached"
        return CallFailure(CallErrorKind.BUDGET, told)

    def close(self) -> None:
        """Closes the account of the shared limit, if there is one. Raises StoreError."""
        if self._purse is not None:
            self._purse.close()

    async def _claimed(self, reserved: Amount, purse: "Purse") -> bool:
        """Whether the limit that is shared with others allows what was reserved."""
        try:
            if reserved.usd is None:
                raise UsageError(
                    f"no price of '{self._version.name}' is known, so that the limit of {dollars(purse.limit.usd)} of "
                    f"the {purse.limit.kind} could not be kept; set `price` in its entry"
                )
            return await purse.claim(reserved.usd)
        except BaseException:
            self._release(reserved)
            raise

    async def _reserve(self, call: Call, *, batch: bool) -> Amount | None:
        learns = self._learns and call.most is None
        if not self.limited:
            return replace(NOTHING, is_guess=True) if learns else NOTHING
        if self.reached:
            return None
        known = None if learns else most(self._version, call, self._today().isoformat(), batch=batch)
        waiter = _Waiter(known, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        self._let_in()
        try:
            fits = await waiter.place
        except asyncio.CancelledError:
            if not waiter.place.cancelled() and waiter.place.result():
                self.settle(waiter.reserved, None)
            elif waiter in self._waiting:
                self._waiting.remove(waiter)
            raise
        return waiter.reserved if fits else None

    def settle(self, reserved: Amount, outcome: Response | CallFailure | None) -> None:
        """Replaces the reservation of a call by its actual cost.

        Failures cost nothing, except those after which the endpoint may have charged: these count with the whole
        reservation.
        """
        before = self.usd or 0.0
        unknown = self._dearest or NOTHING if reserved.is_guess else reserved
        if isinstance(outcome, Response):
            self._spend(outcome, unknown)
        elif outcome is not None and outcome.kind in MAY_HAVE_COST:
            self.tokens += unknown.tokens
            self.usd = _sum(self.usd, unknown.usd)
        if self._purse is not None:
            self._purse.settle(reserved.usd or 0.0, (self.usd or 0.0) - before)
        self._release(reserved)

    def _release(self, reserved: Amount) -> None:
        if self.limited:
            self._in_flight -= 1
            self._reserved_tokens -= reserved.tokens
            self._reserved_usd -= reserved.usd or 0.0
            self._let_in()

    def _spend(self, response: Response, unknown: Amount) -> None:
        usage, usd = response.usage, response.usd
        if usage.input_tokens is None or usage.output_tokens is None:
            tokens, usd = unknown.tokens, unknown.usd if usd is None else usd
        else:
            tokens = usage.input_tokens + usage.output_tokens
            if usd is None:
                asked_on = response.asked_on or self._today().isoformat()
                usd = cost_usd(self._version, usage, asked_on, batch=response.batch)
        self.tokens += tokens
        self.usd = _sum(self.usd, usd)
        if self._learns and (tokens or usd):
            before = self._dearest or NOTHING
            self._dearest = Amount(max(tokens, before.tokens), max(usd or 0.0, before.usd or 0.0), is_guess=True)

    def _let_in(self) -> None:
        """Admits waiting calls in order as long as they fit.

        Refuses all if the first does not fit and nothing is in flight.
        """
        while self._waiting and not self.reached:
            first = self._waiting[0]
            if first.place.done():  # the call was cancelled while it waited
                self._waiting.popleft()
                continue
            amount = self._to_reserve(first)
            if amount is None or not self._fits(amount):
                if self._in_flight:
                    return
                self.reached = True
                break
            self._waiting.popleft()
            self._in_flight += 1
            first.reserved = amount
            self._reserved_tokens += amount.tokens
            self._reserved_usd += amount.usd or 0.0
            first.place.set_result(True)
        if self.reached:
            for waiter in self._waiting:
                if not waiter.place.done():
                    waiter.place.set_result(False)
            self._waiting.clear()

    def _to_reserve(self, waiter: _Waiter) -> Amount | None:
        """Returns the amount to reserve for a call; None if the call has to wait until no other is in flight."""
        if waiter.most is not None:
            return waiter.most
        if self._dearest is None and self._in_flight:
            return None
        return self._dearest or _LEAST

    def _fits(self, amount: Amount) -> bool:
        version, before = self._version, self.before
        tokens = before.tokens + self.tokens + self._reserved_tokens + amount.tokens
        if version.max_tokens_total is not None and tokens > version.max_tokens_total:
            return False
        if version.max_cost_usd is None:
            return True
        if amount.usd is None:
            return False  # without a price, nobody knows whether the call fits
        return (before.usd or 0.0) + (self.usd or 0.0) + self._reserved_usd + amount.usd <= version.max_cost_usd


def most(version: ModelVersion, call: Call, asked_on: str, *, batch: bool = False) -> Amount:
    """Returns the most that one call can cost: `max_tokens` for the answer, and one token per byte of the prompt.

    No tokenizer in use produces more tokens than that. If writing the prompt to a cache costs more than plain input,
    the higher price is used. A call that tells the most itself is believed.
    """
    if call.most is not None:
        return Amount(*call.most)
    tokens_in = most_input_tokens(call)
    plain, cached = Usage(tokens_in, version.max_tokens), Usage(tokens_in, version.max_tokens, 0, tokens_in)
    costs = [cost_usd(version, usage, asked_on, batch=batch) for usage in (plain, cached)]
    known = [usd for usd in costs if usd is not None]
    return Amount(tokens_in + version.max_tokens, max(known) if known else None)


def most_input_tokens(call: Call) -> int:
    """Returns an upper bound on the number of tokens in the call's prompt."""
    prompt = call.prompt
    texts = sum(len(message.text.encode(errors="surrogatepass")) for message in prompt.messages)
    schema = len(json_text(dict(prompt.answer_schema))) if prompt.answer_schema is not None else 0
    acts = sum(len(json_text([tool.name, tool.description, dict(tool.parameters)]).encode()) for tool in prompt.tools)
    for message in prompt.messages:
        acts += sum(len(json_text([call.name, dict(call.arguments)]).encode()) for call in message.calls)
        acts += len(json_text(message.own).encode()) if message.own is not None else 0
    return texts + schema + acts + _TOKENS_A_MESSAGE * len(prompt.messages) + _TOKENS_A_CALL


def _sum(known: float | None, more: float | None) -> float | None:
    return known if more is None else (known or 0.0) + more
