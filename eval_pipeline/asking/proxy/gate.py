"""The gate of one attempt: calls begin while the limits of the case allow them, however many are made at once."""

import asyncio
from dataclasses import replace

from eval_pipeline.asking.budgets import Amount
from eval_pipeline.asking.journal.codec import call_told
from eval_pipeline.asking.proxy.calls import ProxiedCall
from eval_pipeline.asking.proxy.steps import code_in, is_same
from eval_pipeline.asking.spending.tally import CallLimits, CallTally, stepped
from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import Response, ToolCall
from eval_pipeline.core.model_versions import ModelVersion


class NotCalledError(Exception):
    """A call of a tool is not made; the message says why."""


class StepCount:
    """Counts calls of tools in an attempt: those that models ask for, and those made here that no model asked for.

    Attributes:
        ended: that the limit has refused a call, with a sentence; None as long as it has not.
    """

    def __init__(self, most: int) -> None:
        """Nothing is called yet, and so much may be."""
        self.ended: tuple[str, str] | None = None
        self._most, self._count, self._made = most, 0, 0
        self._asked: list[ToolCall] = []

    def ask(self, told: ProxiedCall) -> None:
        """Counts what a model asks for, also as text, before the program is told: it may make the calls at once."""
        self._asked += told.response.calls
        self._count += len(told.response.calls) + (code_in(told) is not None)

    def make(self, call: ToolCall) -> None:
        """Counts a call that is made here. Raises a NotCalledError with the limit that is reached."""
        asked = next((one for one in self._asked if is_same(one, call)), None)
        if self._made >= self._most or (asked is None and self._count >= self._most):
            self.ended = self.ended or stepped(self._most)
            raise NotCalledError(self.ended[1])
        self._made += 1
        if asked is None:
            self._count += 1
        else:
            self._asked.remove(asked)

    def reached(self) -> tuple[str, str] | None:
        """Returns that no model may be asked any more, if so."""
        return stepped(self._most) if self._count >= self._most else None


class CallGate:
    """Lets a call begin while what is used, and what calls in flight may use at most, is below the limits.

    A call that does not fit waits for those in flight, as they mostly take less; if there are none, it is refused. So
    an agent that makes one call after the other may do as many as one that is asked by the pipeline itself.

    Attributes:
        steps: counts calls of tools.
    """

    def __init__(self, version: ModelVersion, limits: CallLimits) -> None:
        """Nothing is used."""
        self.steps = StepCount(limits.steps)
        self._ended: tuple[str, str] | None = None
        self._tally = CallTally(version, limits)
        self._in_flight: list[Amount] = []
        self._freed = asyncio.Condition()

    async def enter(self, most: Amount) -> tuple[str, str] | None:
        """Returns None when a call may begin, after which `leave` has to be called; otherwise the limit in its way."""
        async with self._freed:
            while (reached := self._reached()) is not None:
                if not self._in_flight:
                    self._ended = self._ended or reached
                    return reached
                await self._freed.wait()
            self._in_flight.append(most)
        return None

    @property
    def ended(self) -> tuple[str, str] | None:
        """The first limit that refused a call, and a sentence on it."""
        return self._ended or self.steps.ended

    async def leave(self, most: Amount, answered: ProxiedCall | None) -> None:
        """Counts a call that has been answered, or forgets one that has not."""
        async with self._freed:
            self._in_flight.remove(most)
            if answered is not None:
                request, response = answered.request, answered.response
                if response.usd is None:  # the model that was named has a price of its own
                    response = replace(response, usd=most.usd)
                self._tally.add(response, lambda response: (_size(request), _size(_said(response))))
            self._freed.notify_all()

    def _reached(self) -> tuple[str, str] | None:
        tokens = sum(one.tokens for one in self._in_flight)
        usd = sum(one.usd or 0.0 for one in self._in_flight)
        tally = self._tally
        return self.steps.reached() or tally.spent(tokens, usd) or tally.called(len(self._in_flight))


def _said(response: Response) -> list[object]:
    return [response.text, *map(call_told, response.calls)]


def _size(told: object) -> int:
    return len(canonical_json(told).encode())
