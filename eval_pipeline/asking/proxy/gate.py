"""The gate of one attempt: calls begin while the limits of the case allow them, however many are made at once."""

import asyncio
from dataclasses import replace

from eval_pipeline.asking.budgets import Amount
from eval_pipeline.asking.journal.codec import call_told
from eval_pipeline.asking.proxy.calls import ProxiedCall
from eval_pipeline.asking.spending.tally import CallLimits, CallTally
from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import Response
from eval_pipeline.core.model_versions import ModelVersion


class CallGate:
    """Lets a call begin while what is used, and what calls in flight may use at most, is below the limits.

    A call that does not fit waits for those in flight, as they mostly take less; if there are none, it is refused. So
    an agent that makes one call after the other may do as many as one that is asked by the pipeline itself.

    Attributes:
        ended: the first limit that refused a call, and a sentence on it.
    """

    def __init__(self, version: ModelVersion, limits: CallLimits) -> None:
        """Nothing is used."""
        self.ended: tuple[str, str] | None = None
        self._limits, self._tally = limits, CallTally(version, limits)
        self._in_flight: list[Amount] = []
        self._freed = asyncio.Condition()

    async def enter(self, most: Amount) -> tuple[str, str] | None:
        """Returns None when a call may begin, after which `leave` has to be called; otherwise the limit in its way."""
        async with self._freed:
            while (reached := self._reached()) is not None:
                if not self._in_flight:
                    self.ended = self.ended or reached
                    return reached
                await self._freed.wait()
            self._in_flight.append(most)
        return None

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
        return self._tally.spent(tokens, usd) or self._tally.called(len(self._in_flight))


def _said(response: Response) -> list[object]:
    return [response.text, *map(call_told, response.calls)]


def _size(told: object) -> int:
    return len(canonical_json(told).encode())
