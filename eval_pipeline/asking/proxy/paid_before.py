"""What runs before have paid for in an attempt, so that a request which is not the same any more is told."""

from eval_pipeline.asking.calls import Caller
from eval_pipeline.core.model import Json, Response
from eval_pipeline.providers.base import Call

_ASKED = "asked"


class PaidBefore:
    """The requests of one attempt that were answered by an upstream: those of runs before, and of this one."""

    def __init__(self, caller: Caller, call: Call) -> None:
        """Takes the journal's caller and the attempt; knows nothing before `open`."""
        self._caller, self._call = caller, call
        self._unused, self._noted, self._paid = list[Json](), 0, 0

    async def open(self) -> None:
        """Reads what was paid for before. Raises a StoreError."""
        while (kept := await self._caller.made(_place(self._noted), self._call)) is not None:
            self._unused.append(kept.metadata[_ASKED])
            self._noted += 1

    async def note(self, request: Json, *, from_journal: bool) -> None:
        """Notes a request that was answered. Raises a StoreError."""
        if request in self._unused:
            self._unused.remove(request)
        if from_journal:
            return
        self._paid += 1
        place, self._noted = _place(self._noted), self._noted + 1

        async def make() -> Response:
            return Response("", metadata={_ASKED: request})

        await self._caller.once(place, self._call, make)

    @property
    def changed(self) -> int:
        """How many requests were paid for now that differ from those that had been paid for, and were not made."""
        return min(self._paid, len(self._unused))


def _place(number: int) -> Json:
    return {"paid": number}
