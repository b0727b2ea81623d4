"""The zygotes of one sandbox, which are started on demand and kept as long as they work properly."""

import asyncio

from eval_pipeline.sandbox.limits import Limits
from eval_pipeline.sandbox.returned.packed_tables import NO_TABLES
from eval_pipeline.sandbox.tiers import NoSandboxError, Tier
from eval_pipeline.sandbox.zygote_process import ZygoteError, ZygoteProcess

_CLOSED = "the sandbox was closed"


class Pool:
    """Zygotes of one tier.

    A zygote that is due for replacement keeps working until the new one has started, so that nobody has to wait. Only
    one that has died, or could not remove what a snippet left, is discarded at once.
    """

    def __init__(self, tier: Tier, limits: Limits) -> None:
        self._tier, self._limits = tier, limits
        self._idle: list[ZygoteProcess] = []
        self._busy: set[ZygoteProcess] = set()
        self._spare: asyncio.Task[ZygoteProcess] | None = None
        self._starting: set[asyncio.Task[ZygoteProcess]] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False

    async def take(self, tables: str = NO_TABLES.key) -> ZygoteProcess:
        """Returns a zygote for one snippet, preferably one that already has the tables with this key.

        Raises:
            NoSandboxError: none can be started.
        """
        await self._use_spare()
        while self._idle:
            zygote = min(self._idle, key=lambda one: (one.retiring, one.tables != tables))
            self._idle.remove(zygote)
            self._busy.add(zygote)
            if zygote.alive:
                return zygote
            self.give_up(zygote)
        spare, self._spare = self._spare, None
        zygote = await self._started(spare or self._start())
        if self._closed:
            self._end(zygote)
            raise ZygoteError(_CLOSED)
        self._busy.add(zygote)
        return zygote

    def give_back(self, zygote: ZygoteProcess, *, trusted: bool = True) -> None:
        """Returns a zygote to the pool for the next snippet.

        Args:
            zygote: a zygote from `take`.
            trusted: whether it may stay. If not, or after the limit of snippets, it is replaced as soon as another one
                is ready.
        """
        self._busy.discard(zygote)
        if self._closed:
            self.give_up(zygote)
            return
        self._idle.append(zygote)
        if not trusted or zygote.snippets >= self._limits.snippets_per_zygote:
            zygote.retiring = True
            self._spare = self._spare or self._start()

    def give_up(self, zygote: ZygoteProcess) -> None:
        """Ends a zygote and starts another one in the background."""
        self._busy.discard(zygote)
        self._end(zygote)
        if self._spare is None and not self._idle and not self._closed:
            self._spare = self._start()

    async def _use_spare(self) -> None:
        """Puts a zygote that has started in the place of one that is due for replacement."""
        retiring = next((one for one in self._idle if one.retiring), None)
        if retiring is None:
            return
        if self._spare is None:
            self._spare = self._start()
        elif self._spare.done():
            spare, self._spare = self._spare, None
            self._idle.append(await self._started(spare))
            self._idle.remove(retiring)
            self._end(retiring)

    def _start(self) -> asyncio.Task[ZygoteProcess]:
        task = asyncio.get_running_loop().create_task(ZygoteProcess.start(self._tier, self._limits))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)
        return task

    async def _started(self, task: asyncio.Task[ZygoteProcess]) -> ZygoteProcess:
        try:
            return await task
        except ZygoteError as error:
            raise NoSandboxError(f"the sandbox ({self._tier.title}) does not start any more: {error}") from error
        except asyncio.CancelledError:
            if self._closed and task.cancelled():
                raise ZygoteError(_CLOSED) from None
            raise

    def _end(self, zygote: ZygoteProcess) -> None:
        task = asyncio.get_running_loop().create_task(zygote.stop())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """Ends all of them, including busy ones and those that start."""
        self._closed = True
        starting = self._starting | ({self._spare} if self._spare is not None else set())
        self._spare = None
        for task in starting:
            task.cancel()
        started = await asyncio.gather(*starting, return_exceptions=True)
        zygotes = [*self._idle, *self._busy, *(one for one in started if isinstance(one, ZygoteProcess))]
        self._idle = []
        await asyncio.gather(*(zygote.stop() for zygote in zygotes))
        while self._ending:  # what was waited for by a snippet ends when that notices
            await asyncio.gather(*self._ending)
