"""The zygotes of one sandbox: started when needed, kept while they behave."""

import asyncio

from eval_pipeline.sandbox.limits import Limits
from eval_pipeline.sandbox.tabular import NO_TABLES
from eval_pipeline.sandbox.tiers import NoSandboxError, Tier
from eval_pipeline.sandbox.zygote_process import ZygoteError, ZygoteProcess


class Pool:
    """Zygotes of one tier. A replacement starts as soon as one is given up, so that nobody has to wait for it."""

    def __init__(self, tier: Tier, limits: Limits) -> None:
        self._tier, self._limits = tier, limits
        self._idle: list[ZygoteProcess] = []
        self._busy: set[ZygoteProcess] = set()
        self._spare: asyncio.Task[ZygoteProcess] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False

    async def take(self, tables: str = NO_TABLES.key) -> ZygoteProcess:
        """A zygote for one snippet, if possible one that has the tables with this key.

        Raises:
            NoSandboxError: none can be started.
        """
        while self._idle:
            place = next((place for place, zygote in enumerate(self._idle) if zygote.tables == tables), -1)
            zygote = self._idle.pop(place)
            self._busy.add(zygote)
            if zygote.alive:
                return zygote
            self.give_up(zygote)
        spare, self._spare = self._spare, None
        try:
            zygote = await (spare or ZygoteProcess.start(self._tier, self._limits))
        except ZygoteError as error:
            raise NoSandboxError(f"the sandbox ({self._tier.title}) does not start any more: {error}") from error
        self._busy.add(zygote)
        return zygote

    def give_back(self, zygote: ZygoteProcess) -> None:
        """Keeps a zygote for the next snippet, unless it has run enough of them."""
        if self._closed or zygote.snippets >= self._limits.snippets_per_zygote:
            self.give_up(zygote)
        else:
            self._busy.discard(zygote)
            self._idle.append(zygote)

    def give_up(self, zygote: ZygoteProcess) -> None:
        """Ends a zygote and has another started, without keeping anybody waiting."""
        self._busy.discard(zygote)
        task = asyncio.get_running_loop().create_task(zygote.stop())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        if self._spare is None and not self._idle and not self._closed:
            self._spare = asyncio.get_running_loop().create_task(ZygoteProcess.start(self._tier, self._limits))

    async def close(self) -> None:
        """Ends all of them, those at work too."""
        self._closed = True
        if self._spare is not None:
            self._spare.cancel()
            started = await asyncio.gather(self._spare, return_exceptions=True)
            self._idle += [zygote for zygote in started if isinstance(zygote, ZygoteProcess)]
            self._spare = None
        zygotes, self._idle = [*self._idle, *self._busy], []
        await asyncio.gather(*(zygote.stop() for zygote in zygotes), *self._ending)
