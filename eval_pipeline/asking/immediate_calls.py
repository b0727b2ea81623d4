"""A caller for models that answer immediately: it asks many calls together."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import ClassVar

from eval_pipeline.asking.answers import Answer, Answered
from eval_pipeline.asking.budgets import NOTHING
from eval_pipeline.asking.calls import Caller
from eval_pipeline.asking.journal.codec import FirstAsker, encode_response
from eval_pipeline.core.model import CallFailure, Response
from eval_pipeline.providers.base import Call, CallError
from eval_pipeline.providers.standins.inprocess import Immediate


class ImmediateCaller(Caller):
    """Asks many calls with one journal lookup and one commit.

    Use it only if the provider is `Immediate` and the model version has no spending limits: which calls fit into a
    budget can be found only by asking one after the other.
    """

    together: ClassVar[int] = 128

    async def ask_many(self, calls: Sequence[Call]) -> list[Answer]:
        """Returns the answers to several calls, as `Caller.ask_many` does."""
        keys = [self.key(call) for call in calls]
        bodies = self._journal.get_many(keys)
        answers: list[Answer | None] = []
        fresh: dict[str, Response] = {}
        askers: dict[str, FirstAsker] = {}
        try:
            for key, call in zip(keys, calls, strict=True):
                answer: Answer | None = None
                if key in bodies:
                    answer = Answered(self._decoded(key, bodies[key]), from_journal=True)
                elif key not in fresh and key not in self._under_way:  # equal calls are answered from the journal
                    answer = self._ask_now(call)
                    if isinstance(answer, Answered):
                        fresh[key] = answer.response
                        askers[key] = self._asker(call)
                answers.append(answer)
        finally:
            late = await self._record(fresh, askers)
        told: list[Answer] = []
        for key, call, found in zip(keys, calls, answers, strict=True):
            told.append(await self._answer(call) if found is None or key in late else found)
            self._count(told[-1])
        return told

    def _ask_now(self, call: Call) -> Answer:
        assert isinstance(self._provider, Immediate)
        self.counters.calls += 1
        try:
            response = self._stamped(self._provider.answer(call), retries=0)
        except CallError as error:
            return CallFailure(error.kind, error.message)
        self._settle(NOTHING, response)
        return Answered(response, from_journal=False)

    async def _record(self, fresh: Mapping[str, Response], askers: Mapping[str, FirstAsker]) -> set[str]:
        """Writes the responses to the journal.

        Returns the keys under which another process has recorded one meanwhile.
        """
        shared: asyncio.Future[Answer | Exception | None] = asyncio.get_running_loop().create_future()
        self._under_way |= dict.fromkeys(fresh, shared)
        try:
            rows = [(key, encode_response(response, askers[key])) for key, response in fresh.items()]
            new = await self._journal.append_many(rows)
        finally:
            for key in fresh:
                del self._under_way[key]
            shared.set_result(None)
        return {key for key, is_new in zip(fresh, new, strict=True) if not is_new}
