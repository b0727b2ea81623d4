"""Worlds for code that waits: what a program makes of a world, and what there is in the end of an attempt."""

import atexit
import os
from collections.abc import Coroutine, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from eval_pipeline.core.model import Json, ToolResult
from eval_pipeline.sandbox.blocking import OwnLoop
from eval_pipeline.sandbox.limits import MIB
from eval_pipeline.sandbox.world.changes import ChangedFile
from eval_pipeline.sandbox.world.hosted import Hosted
from eval_pipeline.sandbox.world.worlds import OpenWorld, WorldLimits, Worlds
from eval_pipeline_plugins.tracks.agent.running.looking import MOST_ROWS

T = TypeVar("T")
Databases = Mapping[str, tuple[str, bool]]
State = Mapping[str, ChangedFile]
HostedQueries = tuple[Hosted | None, Mapping[str, Sequence[str]], Sequence[Sequence[str]]]
_OPENING = Lock()
_LOOKED_AT = WorldLimits(kept_bytes=128 * MIB)
_BUILT = WorldLimits(world_bytes=1024 * MIB, kept_bytes=512 * MIB)


class BlockingWorlds:
    """Worlds with methods that wait, for any thread; they run in a loop of their own."""

    def __init__(self, limits: WorldLimits | None = None) -> None:
        """Starts the loop, and no jail yet. Raises a NoSandboxError if this machine has none."""
        self._loop = OwnLoop("worlds")
        self._worlds = Worlds(limits)
        try:
            self.wait(self._worlds.__aenter__())
        except BaseException:
            self._loop.stop()
            raise

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs something in the loop of the worlds and returns what it gives."""
        return self._loop.wait(work)

    @property
    def worlds(self) -> Worlds:
        """The worlds, for what runs in their loop."""
        return self._worlds

    def changed(
        self, folder: Path, code: str, seconds: float, packages: Path | None = None
    ) -> dict[str, ChangedFile] | str:
        """Runs Python in a world and returns what has changed in it, or why the code failed.

        There may be further packages.

        Raises:
            NoSandboxError: this machine has no jail.
            WorldError: the world has ended, or cannot be made.
        """

        async def changed() -> dict[str, ChangedFile] | str:
            async with self._worlds.open(folder, packages=packages) as world:
                return await _ran(world, code, seconds)

        return self.wait(changed())

    def looked(
        self, folder: Path, code: str, seconds: float, databases: Databases, state: State, hosted: HostedQueries
    ) -> tuple[dict[str, ChangedFile] | str, dict[str, Mapping[str, Json] | str]]:
        """Runs Python in an end state; returns what `changed` does, and what databases on a server hold.

        Args:
            folder: the world's.
            code: Python.
            seconds: what it may take.
            databases: those of the world.
            state: the end state.
            hosted: the databases on a server, if there are some, and of each what is asked; and see
                `inside.looked.tabled` for `frees`.

        Raises:
            NoSandboxError: this machine has no jail.
            WorldError: the world has ended, or cannot be made.
        """

        async def looked() -> tuple[dict[str, ChangedFile] | str, dict[str, Mapping[str, Json] | str]]:
            async with self._worlds.open(folder, databases, state, hosted=hosted[0]) as world:
                found = await _ran(world, code, seconds)
                _, queries, frees = hosted
                return found, {name: await world.look(name, asked, MOST_ROWS, frees) for name, asked in queries.items()}

        return self.wait(looked())

    def commanded(
        self,
        folder: Path,
        command: str,
        seconds: float,
        databases: Databases,
        state: State,
        hosted: Hosted | None,
        packages: Path | None,
    ) -> ToolResult:
        """Runs a command of the shell in an end state, with further packages; see `looked`."""

        async def commanded() -> ToolResult:
            async with self._worlds.open(folder, databases, state, hosted=hosted, packages=packages) as world:
                return await world.call("shell", {"command": command}, seconds)

        return self.wait(commanded())

    def hosted(
        self, folder: Path, hosted: Hosted, databases: Databases, scripts: Mapping[str, Sequence[str]]
    ) -> dict[str, ChangedFile]:
        """Makes databases on a server and returns their files; see `OpenWorld.make`."""

        async def made() -> dict[str, ChangedFile]:
            async with self._worlds.open(folder, databases, hosted=hosted) as world:
                return await world.make(scripts)

        return self.wait(made())

    def close(self) -> None:
        """Ends all processes."""
        atexit.unregister(self.close)
        self.wait(self._worlds.__aexit__(None, None, None))
        self._loop.stop()


async def _ran(world: OpenWorld, code: str, seconds: float) -> dict[str, ChangedFile] | str:
    told = await world.call("python", {"code": code}, seconds)
    return told.text if told.error_class is not None else await world.end_state()


def own_worlds() -> BlockingWorlds:
    """Returns this process's worlds, for gold and for checks."""
    return _open(_LOOKED_AT)


def build_worlds() -> BlockingWorlds:
    """Returns this process's worlds with room for what a suite makes in them."""
    return _open(_BUILT)


def _open(limits: WorldLimits) -> BlockingWorlds:
    with _OPENING:  # several threads may be the first that need them
        return _opened(os.getpid(), limits)


@lru_cache(maxsize=4)
def _opened(process: int, limits: WorldLimits) -> BlockingWorlds:
    """Opens worlds; a forked process has opened none, as it has no threads of the process before."""
    found = BlockingWorlds(limits)
    atexit.register(found.close)
    return found


def close_worlds() -> None:
    """Ends all processes of `own_worlds` and `build_worlds`."""
    for limits in (_LOOKED_AT, _BUILT):
        _open(limits).close()
    _opened.cache_clear()
