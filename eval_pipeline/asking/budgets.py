"""What one run of a model version may spend: no call is made that could exceed it."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import CallErrorKind, CallFailure, Response, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Call
from eval_pipeline.providers.prices import cost_usd
from eval_pipeline.providers.registry import traits_of

REACHED = CallFailure(CallErrorKind.BUDGET, "not asked: the budget of the run was reached")

MAY_HAVE_COST = frozenset({CallErrorKind.TIMEOUT, CallErrorKind.CONNECTION, CallErrorKind.BAD_RESPONSE})
"""Failures after which the endpoint may have answered and charged, unseen."""

_TOKENS_A_CALL, _TOKENS_A_MESSAGE = 512, 16
"""What endpoints put around a prompt: instructions for the answer form; marks of where a message begins and ends."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Tokens, and dollars where they are known."""

    tokens: int
    usd: float | None


NOTHING = Amount(0, None)


_LEAST = Amount(1, 1e-9)
"""What every call takes: none fits where nothing is left."""


@dataclass(slots=True)
class _Waiter:
    """A call that wants to be made; `most` is what it takes at most, None where nobody knows."""

    most: Amount | None
    place: "asyncio.Future[bool]"
    reserved: Amount = NOTHING


class Budget:
    """Keeps account of what calls cost, and holds back those that could exceed the model version's limits.

    Each call reserves the most that it could cost; what is reserved and what was spent together stay within the limits.
    A call that does not fit waits while others are in flight, since they mostly cost less than they reserved. When none
    is, the budget is reached, and no call is made any more.

    Attributes:
        limited: there are limits; else every call is let through.
        before: what earlier steps of the run have spent.
        tokens, usd: spent since; no dollars are known (None) where no call had a price.
        reached: a call was refused, here or in an earlier step.

    What an application takes that makes its own prompt cannot be told before. The first call is made
    alone; each later one reserves what the dearest so far took, so that the limits can be exceeded by as much as the
    calls in flight take more than that one.
    """

    def __init__(
        self,
        version: ModelVersion,
        before: Amount = NOTHING,
        *,
        reached: bool = False,
        closed: bool = False,
        today: Callable[[], date],
    ) -> None:
        """Nothing is reserved yet; `today` is the day by which prices are looked up; `closed` lets no call be made."""
        self.before, self.reached = before, reached or closed
        self.tokens = 0
        self.usd: float | None = None
        self._version = version
        self._today = today
        self.limited = closed or version.max_cost_usd is not None or version.max_tokens_total is not None
        self._learns = traits_of(version.provider).own_prompt
        self._dearest: Amount | None = None
        self._in_flight = 0
        self._reserved_tokens, self._reserved_usd = 0, 0.0
        self._waiting: deque[_Waiter] = deque()

    async def reserve(self, call: Call, *, batch: bool = False) -> Amount | None:
        """Sets aside the most that a call could cost; None: it must not be made.

        What is returned has to be handed to `settle`, whatever becomes of the call.
        """
        if not self.limited:
            return NOTHING
        if self.reached:
            return None
        known = None if self._learns else most(self._version, call, self._today().isoformat(), batch=batch)
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
        """Replaces what was reserved for a call by what it cost.

        Failures cost nothing, but for those after which the endpoint may have charged: they count with the most.
        """
        unknown = reserved if not self._learns else self._dearest or NOTHING
        if isinstance(outcome, Response):
            self._spend(outcome, unknown)
        elif outcome is not None and outcome.kind in MAY_HAVE_COST:
            self.tokens += unknown.tokens
            self.usd = _sum(self.usd, unknown.usd)
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
            self._dearest = Amount(max(tokens, before.tokens), max(usd or 0.0, before.usd or 0.0))

    def _let_in(self) -> None:
        """Lets those in who fit, in their order; refuses all where the first does not and nothing can come free."""
        while self._waiting and not self.reached:
            first = self._waiting[0]
            if first.place.done():  # cancelled while it waited
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
        """What has to be free for a call; None while it must not be made beside others."""
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
            return False  # without a price it is not known whether the call fits
        return (before.usd or 0.0) + (self.usd or 0.0) + self._reserved_usd + amount.usd <= version.max_cost_usd


def most(version: ModelVersion, call: Call, asked_on: str, *, batch: bool = False) -> Amount:
    """The most that one call can take: `max_tokens` for the answer, and for the prompt a token a byte.

    No tokenizer in use gives more than that. Where writing the prompt to a cache costs more than reading it, it does.
    """
    tokens_in = most_input_tokens(call)
    plain, cached = Usage(tokens_in, version.max_tokens), Usage(tokens_in, version.max_tokens, 0, tokens_in)
    costs = [cost_usd(version, usage, asked_on, batch=batch) for usage in (plain, cached)]
    known = [usd for usd in costs if usd is not None]
    return Amount(tokens_in + version.max_tokens, max(known) if known else None)


def most_input_tokens(call: Call) -> int:
    """More tokens than the call's prompt can have."""
    prompt = call.prompt
    texts = sum(len(message.text.encode(errors="surrogatepass")) for message in prompt.messages)
    schema = len(json_text(dict(prompt.answer_schema))) if prompt.answer_schema is not None else 0
    return texts + schema + _TOKENS_A_MESSAGE * len(prompt.messages) + _TOKENS_A_CALL


def _sum(known: float | None, more: float | None) -> float | None:
    return known if more is None else (known or 0.0) + more
