"""Opens worlds in jails: one zygote a world, which forks a keeper for each attempt."""

import asyncio
import json
import os
import socket
import struct
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import ErrorClass, Json, ToolResult
from eval_pipeline.core.system.programs import OwnProgram, ProgramEnded
from eval_pipeline.sandbox.inside.cut_text import cut_text
from eval_pipeline.sandbox.jail import Launch, WorldMount, bwrap_launch, system_bwrap, wheel_bwrap
from eval_pipeline.sandbox.limits import MIB, Limits
from eval_pipeline.sandbox.returned.error_classes import classify
from eval_pipeline.sandbox.returned.reading import stopped
from eval_pipeline.sandbox.tiers import NoSandboxError
from eval_pipeline.sandbox.world.changes import ChangedFile, packed_changes, read_changes
from eval_pipeline.sandbox.world.errors import WorldError
from eval_pipeline.sandbox.world.hosted import Hosted
from eval_pipeline.sandbox.world.made import made_variables
from eval_pipeline.sandbox.world.programs import Serve, arguments_of, door, ended_as, environment_of
from eval_pipeline.sandbox.world.tools import why_wrong

_HEAD = struct.Struct("<II")
_START_S, _GRACE_S, _MAKE_S = 60.0, 90.0, 900.0  # the second with a start in it
_MOST_HEADER = 64 * MIB
_MOST_COUNT = 1 << 53
_PLAIN = frozenset({"ShellError", "ToolError"})  # nothing that a program calls so
_NOTE_BYTES = 200  # of a text that is cut already


@dataclass(frozen=True, slots=True)
class WorldLimits:
    """Limits of one attempt in a world.

    Attributes:
        told_bytes: bytes of a tool's result that the model is told; more is cut, with a note.
        world_bytes, world_files: what it may change or add, in memory.
        kept_bytes: bytes of changed files that are kept; what has no room is left out by name.
        processes: processes and threads at the same time.
        memory_bytes: memory of all its processes together.
    """

    told_bytes: int = 16_000
    world_bytes: int = 256 * MIB
    world_files: int = 20_000
    kept_bytes: int = 32 * MIB
    processes: int = 64
    memory_bytes: int = 1024 * MIB


@dataclass(frozen=True, slots=True)
class Servers:
    """Servers of tools that are started in a world when one of their tools is called.

    Attributes:
        commands: by name, the command with its arguments, and what it finds in its environment besides.
        folder: their own files, read-only: the folder in which they start, and which nothing else sees.
    """

    commands: Mapping[str, tuple[Sequence[str], Mapping[str, str]]]
    folder: Path | None = None


class Worlds:
    """Opens worlds; an async context manager that belongs to the event loop in which it is opened.

    Example:
        async with Worlds() as worlds, worlds.open(folder, {"shop": ("shop.sqlite", True)}) as world:
            told = await world.call("sql", {"database": "shop", "query": "SELECT 1"}, 10.0)
    """

    def __init__(self, limits: WorldLimits | None = None) -> None:
        """Starts nothing yet."""
        self._limits = limits or WorldLimits()
        self._zygotes: dict[tuple[str, str], asyncio.Task[_Zygote]] = {}

    async def __aenter__(self) -> Self:
        """Raises a NoSandboxError if this machine has no namespaces for a world."""
        if system_bwrap() is None and wheel_bwrap() is None:
            raise NoSandboxError("agents act in a jail with namespaces of its own, which takes bubblewrap; install it")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        zygotes, self._zygotes = list(self._zygotes.values()), {}
        for one in await asyncio.gather(*zygotes, return_exceptions=True):
            if isinstance(one, _Zygote):
                await one.stop()

    @asynccontextmanager
    async def open(
        self,
        folder: Path,
        databases: Mapping[str, tuple[str, bool]] | None = None,
        state: Mapping[str, ChangedFile] | None = None,
        servers: Servers | None = None,
        hosted: Hosted | None = None,
        program: OwnProgram | None = None,
        packages: Path | None = None,
    ) -> AsyncIterator["OpenWorld"]:
        """Opens a world for one attempt; what it changes is gone in the end, unless `end_state` was asked for.

        Args:
            folder: files and databases, which are never written to.
            databases: by name, the file in the folder, or `hosted_place`, and whether it is read-only.
            state: an end state to begin with.
            servers: further tools.
            hosted: the databases that are on a server.
            program: what may be run in it.
            packages: folder of further packages (`layers.py`).

        Raises:
            NoSandboxError: no jail can be started.
            WorldError: the world cannot be made.
        """
        zygote = await self._zygote(folder, databases or {}, servers or Servers({}), hosted, program, packages)
        world = await zygote.keeper(self._limits)
        try:
            await world.begin(state or {})
            yield world
        finally:
            await world.close()

    async def _zygote(
        self,
        folder: Path,
        databases: Mapping[str, tuple[str, bool]],
        servers: Servers,
        hosted: Hosted | None,
        program: OwnProgram | None,
        packages: Path | None,
    ) -> "_Zygote":
        tools = None if servers.folder is None else os.path.realpath(servers.folder)
        files = None if hosted is None else os.path.realpath(hosted.folder or folder)
        seen = None if program is None else [str(one) for one in (program.folder, *program.shown)]
        key = (
            os.path.realpath(folder),
            json_text([databases, servers.commands, tools, files, seen, packages and str(packages)]),
        )
        if key in self._zygotes and self._zygotes[key].done() and not self._is_alive(key):
            del self._zygotes[key]
        if key not in self._zygotes:
            told = {
                "databases": databases,
                "servers": servers.commands,
                "postgres": hosted and hosted.programs,
                "told_bytes": self._limits.told_bytes,
                "world_bytes": self._limits.world_bytes,
                "world_files": self._limits.world_files,
                "kept_bytes": self._limits.kept_bytes,
            }
            limits = Limits(
                threads=self._limits.processes,
                memory_bytes=self._limits.memory_bytes,
                scratch_bytes=self._limits.world_bytes,
                packages=str(packages or ""),
            )
            starts = _Zygote.start(WorldMount(key[0], told, tools, files, program), limits)
            self._zygotes[key] = asyncio.get_running_loop().create_task(starts)
        return await asyncio.shield(self._zygotes[key])

    def _is_alive(self, key: tuple[str, str]) -> bool:
        task = self._zygotes[key]
        return task.exception() is None and task.result().alive


class _Zygote:
    """A process in a jail that has a world's folder and forks keepers."""

    def __init__(self, process: asyncio.subprocess.Process, control: socket.socket, limits: Limits) -> None:
        self._process, self._control, self._limits = process, control, limits

    @classmethod
    async def start(cls, world: WorldMount, limits: Limits) -> Self:
        """Starts it with the first bubblewrap that works. Raises a NoSandboxError with what each said."""
        reasons: list[str] = []
        for found in filter(None, (system_bwrap(), wheel_bwrap())):
            told = await cls._started(bwrap_launch(found, limits, world), limits)
            if isinstance(told, cls):
                return told
            reasons.append(f"{found}: {told}")
        raise NoSandboxError(f"no jail for agents can be started ({'; '.join(reasons)})")

    @classmethod
    async def _started(cls, launch: Launch, limits: Limits) -> Self | str:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with tempfile.TemporaryFile() as log:
            with theirs:
                try:
                    process = await asyncio.create_subprocess_exec(
                        *launch.command,
                        stdin=theirs.fileno(),
                        stdout=asyncio.subprocess.DEVNULL,
                        stderr=log,
                        env=launch.environment,
                        cwd="/",
                        start_new_session=True,
                    )
                except OSError as error:
                    ours.close()
                    return str(error)
            zygote = cls(process, ours, limits)
            try:
                async with asyncio.timeout(_START_S):
                    ready = await asyncio.get_running_loop().sock_recv(ours, 16)
            except BaseException:
                await zygote.stop()
                raise
            if ready == b"ready":
                return zygote
            await zygote.stop()
            log.seek(0)
            words = log.read().decode(errors="replace").strip().splitlines()
            return words[-1][:300] if words else "it ended at once"

    @property
    def alive(self) -> bool:
        """Whether its process is alive."""
        return self._process.returncode is None

    async def keeper(self, limits: WorldLimits) -> "OpenWorld":
        """Forks a keeper. Raises a WorldError if its jail is gone; the next world then has a new one."""
        (ours, theirs), (inner, outer) = socket.socketpair(), socket.socketpair()
        with theirs, outer:
            try:
                socket.send_fds(self._control, [b"keep"], [theirs.fileno(), outer.fileno()])
            except OSError as error:
                ours.close()
                inner.close()
                if self.alive:
                    self._process.kill()
                await self._process.wait()
                raise WorldError("the jail is gone") from error
        reader, writer = await asyncio.open_connection(sock=ours)
        return OpenWorld(reader, writer, limits, self._limits, inner)

    async def stop(self) -> None:
        """Ends it and everything in its jail."""
        self._control.close()
        if self.alive:
            self._process.kill()
        await self._process.wait()


class OpenWorld:
    """The world of one attempt: see `tracks.capabilities.World`."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        limits: WorldLimits,
        sandbox: Limits,
        door: socket.socket,
    ) -> None:
        """Takes the connections to its keeper; by the second one come sockets."""
        self._door = door
        self._waiting: deque[asyncio.Future[Mapping[str, Any]]] | None = None
        self._until = 0.0
        self._reader, self._writer, self._limits, self._sandbox = reader, writer, limits, sandbox

    async def begin(self, state: Mapping[str, ChangedFile]) -> None:
        """Waits for the world and puts an earlier end state into it. Raises a WorldError if it cannot be made."""
        told, _ = await self._answer(_START_S)
        if state and told.get("problem") is None:
            files, body = packed_changes(state)
            told, _ = await self._asked({"op": "begin", "files": files}, _START_S, body)
        if told.get("problem") is not None:
            raise WorldError(str(told["problem"]))

    async def call(
        self, name: str, arguments: Mapping[str, Json], seconds: float, server: str | None = None
    ) -> ToolResult:
        """Calls a tool, which may take that many seconds. A wrong call is a result that says what is wrong.

        Calls are made one after the other, also while a program runs, which may take as long as is left to it.

        Args:
            name: one of `TOOLS`, or what `server` calls it.
            arguments: of the call.
            seconds: for the call, and for starting the server.
            server: the server whose tool it is.

        Raises:
            WorldError: the jail is gone.
        """
        wrong = why_wrong(name, arguments) if server is None else None
        if wrong is not None:
            return ToolResult(wrong, ErrorClass.VALUE, size=len(wrong.encode()))
        asked = {"op": "call", "name": name, "arguments": dict(arguments), "seconds": seconds, "server": server}
        if self._waiting is None:
            told, _ = await self._asked(asked, seconds + _GRACE_S)
        else:  # `run` hears all answers
            # The program may have ended before this call is heard, which then is not bounded by what is left to it.
            asked["seconds"] = max(0.0, min(seconds, self._until - time.monotonic()))
            self._waiting.append(asyncio.get_running_loop().create_future())
            heard = self._waiting[-1]
            await self._send(asked)
            told = await heard
        return self._result(told, seconds)

    async def run(self, program: OwnProgram, text: str, seconds: float, serve: Serve) -> ProgramEnded:
        """Runs a program until it ends, or has taken that many seconds.

        Args:
            program: the one that the world was opened with.
            text: of the task.
            seconds: for all that it does.
            serve: makes of the socket on which the program finds its model what answers there while it runs.

        Raises:
            UsageError: it cannot be started.
            WorldError: the jail is gone.
        """
        asked = {
            "op": "run",
            "command": arguments_of(program, text),
            "environment": environment_of(program),
            "packages": not program.own_packages,
            "text": text,
            "seconds": seconds,
        }
        await self._send(asked)
        async with serve(await door(self._door, _START_S)):
            told = await self._ran(seconds)
        return ended_as(told, program)

    async def _ran(self, seconds: float) -> Mapping[str, Any]:
        """Hears how a program has ended, and meanwhile what calls have given that were made beside it."""
        ended: Mapping[str, Any] | None = None
        self._waiting = waiting = deque[asyncio.Future[Mapping[str, Any]]]()
        self._until = time.monotonic() + seconds
        try:
            while ended is None or waiting:
                told, _ = await self._answer(seconds + _GRACE_S)
                if isinstance(told.get("ran"), dict):
                    ended = told["ran"]
                elif waiting and not (heard := waiting.popleft()).done():
                    heard.set_result(told)
        finally:
            self._waiting = None
            for heard in waiting:
                if not heard.done():
                    heard.set_exception(WorldError("the jail is gone"))
        return ended

    async def listed(self, server: str, seconds: float) -> list[Any] | str:
        """Returns the tools of a server as it tells them, or why there are none.

        Raises:
            WorldError: the jail is gone.
        """
        asked = {"op": "list", "server": server, "seconds": seconds}
        told, _ = await self._asked(asked, _START_S + seconds)
        tools = told.get("tools")
        return tools if isinstance(tools, list) else self._result(told, seconds).text

    def _result(self, told: Mapping[str, Any], seconds: float) -> ToolResult:
        """Reads what a process gave, which may be anything."""
        text = told.get("text")
        shown = text if isinstance(text, str) else ""
        made = made_variables(told.get("made"))
        match told:
            case {"stopped": str() as reason}:
                error_class, message = stopped(reason, replace(self._sandbox, wall_s=seconds))
            case {"error": {"types": [*types], "message": str() as message}}:
                error_class = classify([str(one) for one in types], message)
                message = f"{types[0]}: {message}" if types and types[0] not in _PLAIN else message
            case {"text": str()}:
                text, size, cut = self._bounded(shown)
                is_cut = cut or told.get("cut") is True
                rows, whole = _count(told.get("rows")), _count(told.get("size")) or size
                return ToolResult(text, None, rows, whole, is_cut, made=made)
            case _:
                error_class, message = ErrorClass.MEMORY, "the process ended without a result"
        before, after = self._bounded(shown.rstrip()), self._bounded(message)
        text = f"{before[0]}\n{after[0]}".lstrip()
        return ToolResult(text, error_class, size=len(text.encode()), cut=before[2] or after[2], made=made)

    def _bounded(self, text: str) -> tuple[str, int, bool]:
        """Returns a text that a process may have made as long as it likes, its size, and whether it is cut."""
        told = cut_text(text.encode("utf-8", "replace").decode(), self._limits.told_bytes + _NOTE_BYTES)
        return told["text"], told["size"], told["cut"]

    async def make(self, scripts: Mapping[str, Sequence[str]]) -> dict[str, ChangedFile]:
        """Makes databases on a server from scripts, in a world that is for nothing else, and returns their files.

        Raises:
            WorldError: a script fails, or the jail is gone.
        """
        return _changes(await self._asked({"op": "make", "scripts": scripts}, _MAKE_S))

    async def look(
        self, name: str, queries: Sequence[str], most_rows: int, frees: Sequence[Sequence[str]]
    ) -> Mapping[str, Json] | str:
        """Returns what a database on a server holds, and what queries give, or why that cannot be said.

        See `inside.postgres.look`.

        Raises:
            WorldError: the jail is gone.
        """
        asked = {"op": "look", "name": name, "queries": queries, "most_rows": most_rows, "frees": frees}
        told, body = await self._asked(asked, _START_S + _GRACE_S)
        if told.get("problem") is not None:
            return str(told["problem"])
        found: Mapping[str, Json] = json.loads(body)
        return found

    async def end_state(self) -> dict[str, ChangedFile]:
        """Ends everything that still runs and returns what has changed, by path.

        Raises:
            WorldError: the jail is gone.
        """
        return _changes(await self._asked({"op": "end"}, _START_S + _GRACE_S))

    async def close(self) -> None:
        """Ends the keeper with everything in its world."""
        self._writer.close()
        self._door.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            return

    async def _asked(
        self, header: Mapping[str, Any], patience_s: float, body: bytes = b""
    ) -> tuple[Mapping[str, Any], bytes]:
        await self._send(header, body)
        return await self._answer(patience_s)

    async def _send(self, header: Mapping[str, Any], body: bytes = b"") -> None:
        text = json_text(header).encode(errors="surrogatepass")
        try:
            self._writer.write(_HEAD.pack(len(text), len(body)) + text + body)
            await self._writer.drain()
        except OSError as error:
            raise WorldError("the jail is gone") from error

    async def _answer(self, patience_s: float) -> tuple[Mapping[str, Any], bytes]:
        read = self._reader.readexactly
        try:
            async with asyncio.timeout(patience_s):
                header_bytes, body_bytes = _HEAD.unpack(await read(_HEAD.size))
                if header_bytes > _MOST_HEADER or body_bytes > self._limits.kept_bytes:
                    raise WorldError("an answer of the wrong size")
                told = json.loads(await read(header_bytes))
                return (told if isinstance(told, dict) else {}), await read(body_bytes)
        except (asyncio.IncompleteReadError, OSError) as error:
            raise WorldError("the jail is gone") from error
        except TimeoutError as error:
            raise WorldError(f"no answer within {patience_s:g} s") from error
        except ValueError as error:
            raise WorldError(f"an answer of the wrong form: {error}") from error


def _changes(answer: tuple[Mapping[str, Any], bytes]) -> dict[str, ChangedFile]:
    told, body = answer
    if told.get("problem") is not None:
        raise WorldError(str(told["problem"]))
    try:
        return read_changes(told["files"], told["left_out"], body)
    except (KeyError, TypeError, ValueError) as error:
        raise WorldError(f"an answer of the wrong form: {error!r}") from error


def _count(found: object) -> int | None:
    return found if type(found) is int and 0 <= found < _MOST_COUNT else None
