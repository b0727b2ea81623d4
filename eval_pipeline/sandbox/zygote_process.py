"""A zygote as seen by the pipeline.

It is a child process that gets requests on standard input and answers on standard output.
"""

import asyncio
import json
import os
import shutil
import struct
import tempfile
from collections.abc import Mapping
from typing import Any, Self

from eval_pipeline.core.ids import json_text
from eval_pipeline.sandbox.inside.scratch import wiping
from eval_pipeline.sandbox.limits import Limits
from eval_pipeline.sandbox.returned.packed_tables import NO_TABLES, PackedTables
from eval_pipeline.sandbox.tiers import Tier

_HEAD = struct.Struct("<II")
_START_S = 60.0
_GRACE_S = 30.0  # for the work after a snippet on a busy machine; the zygote itself enforces the time limit
_MOST_HEADER = 1 << 16
_TRIES = 100
_SCRATCH = "scratch"
_IN_MEMORY, _ROOM = "/dev/shm", 4  # noqa: S108 - a folder of its own is made there
_STEPS = 20
"""Steps of a removal between which others get their turn."""


class ZygoteError(Exception):
    """The zygote does not answer, or its answer has the wrong form; it has to be replaced."""


class ZygoteProcess:
    """One process in a jail that runs snippets one after the other.

    Attributes:
        snippets: how many it has run.
        tables: key of the tables that it has.
        retiring: whether it only works until another one is ready.
    """

    def __init__(self, process: asyncio.subprocess.Process, limits: Limits, folder: str) -> None:
        """Takes over a process and the folder that contains its scratch folder; empty if it has none."""
        self.snippets = 0
        self.retiring = False
        self.tables = NO_TABLES.key
        self._process = process
        self._limits = limits
        self._folder = folder
        self._tidying: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, tier: Tier, limits: Limits) -> Self:
        """Starts a zygote and waits until it has imported pandas.

        Raises:
            ZygoteError: it does not start; the message contains its last output.
        """
        folder = "" if tier.separate else tempfile.mkdtemp(prefix="eval-scratch-", dir=_roomy_folder(limits))
        scratch = os.path.join(folder, _SCRATCH) if folder else ""
        if scratch:
            os.mkdir(scratch, 0o700)
        launch = tier.launch(scratch, limits)
        with tempfile.TemporaryFile() as log:
            try:
                process = await asyncio.create_subprocess_exec(
                    *launch.command,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=log,
                    env=launch.environment,
                    cwd="/",
                    start_new_session=True,
                )
            except BaseException as error:  # cancelled too: nobody else would remove it
                if folder:
                    shutil.rmtree(folder, ignore_errors=True)
                if isinstance(error, OSError):
                    raise ZygoteError(str(error)) from error
                raise
            zygote = cls(process, limits, folder)
            try:
                await zygote._answer(_START_S)
            except ZygoteError as error:
                await zygote.stop()
                log.seek(0)
                words = log.read().decode(errors="replace").strip().splitlines()
                raise ZygoteError(words[-1][:300] if words else str(error)) from error
            except BaseException:  # cancelled: nobody else would stop it
                await zygote.stop()
                raise
        return zygote

    @property
    def alive(self) -> bool:
        """Whether its process is alive."""
        return self._process.returncode is None

    async def load(self, tables: PackedTables) -> None:
        """Sends it the tables for the next snippets, if it does not have them already.

        Raises:
            ValueError: a table cannot be read; then the zygote has none.
            ZygoteError: as for `run`.
        """
        if tables.key == self.tables:
            return
        self.tables = ""
        await self._send({"op": "tables", "tables": tables.described}, tables.body)
        told, _ = await self._answer(_START_S)
        if told.get("problem") is not None:
            raise ValueError(told["problem"])
        self.tables = tables.key

    async def run(
        self, code: bytes, wall_s: float, tests: bytes | None = None, *, kept: bool = False
    ) -> tuple[Mapping[str, Any], bytes, bytes]:
        """Runs a snippet; returns what the zygote observed, what the snippet printed, and its result.

        Args:
            code: UTF-8.
            wall_s: seconds it may take.
            tests: what `inside.zygote` reads before the code, to run it in a separate process.
            kept: whether it runs in the process that is kept for trusted code.

        Raises:
            ZygoteError: there was no answer in time; the zygote can no longer be used.
        """
        self.snippets += 1
        if tests is None:
            await self._send({"op": "run", "wall_s": wall_s, "kept": kept}, code)
        else:
            await self._send({"op": "check", "wall_s": wall_s, "tests_bytes": len(tests)}, tests + code)
        seen, body = await self._answer(wall_s + _GRACE_S)
        self._tidy()
        try:
            printed = seen["output_bytes"]
            return seen, body[:printed], body[printed:]
        except (KeyError, TypeError) as error:
            raise ZygoteError(f"an answer of the wrong form: {error!r}") from error

    async def stop(self) -> None:
        """Ends the process and everything in its jail, and removes what they left. May be called again."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self.alive:
            self._process.kill()
        await self._process.wait()
        if self._tidying is not None:
            self._tidying.cancel()
        for _ in range(_TRIES if self._folder else 0):  # its snippet is killed too, but may take a moment to disappear
            if await _removed(self._folder):
                return
            await asyncio.sleep(0.02)

    def _tidy(self) -> None:
        """Removes, while others work, what the zygote has moved out of the scratch folder."""
        is_at_it = self._tidying is not None and not self._tidying.done()
        if self._folder and not is_at_it and len(os.listdir(self._folder)) > 1:
            self._tidying = asyncio.create_task(self._tidied())

    async def _tidied(self) -> None:
        while left := [name for name in os.listdir(self._folder) if name != _SCRATCH]:
            if not all([await _removed(os.path.join(self._folder, name)) for name in left]):
                return  # `stop` tries it again

    async def _send(self, header: Mapping[str, Any], body: bytes) -> None:
        assert self._process.stdin is not None
        text = json_text(header).encode()
        try:
            self._process.stdin.write(_HEAD.pack(len(text), len(body)) + text)
            self._process.stdin.write(body)
            async with asyncio.timeout(_START_S):
                await self._process.stdin.drain()
        except (OSError, RuntimeError) as error:  # RuntimeError: its end of the pipe is known to be closed
            raise ZygoteError("the zygote is gone") from error

    async def _answer(self, patience_s: float) -> tuple[Mapping[str, Any], bytes]:
        assert self._process.stdout is not None
        read = self._process.stdout.readexactly
        most = self._limits.output_bytes + self._limits.result_bytes
        try:
            async with asyncio.timeout(patience_s):
                header_bytes, body_bytes = _HEAD.unpack(await read(_HEAD.size))
                if header_bytes > _MOST_HEADER or body_bytes > most:
                    raise ZygoteError("an answer of the wrong size")
                return json.loads(await read(header_bytes)), await read(body_bytes)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise ZygoteError("the zygote is gone") from error
        except TimeoutError as error:
            raise ZygoteError(f"no answer within {patience_s:g} s") from error
        except ValueError as error:
            raise ZygoteError(f"an answer of the wrong form: {error}") from error


def _roomy_folder(limits: Limits) -> str | None:
    """Returns a folder in memory for scratch folders if it has much more room than a snippet may use, or None.

    Removing a file or a folder there takes no time worth mentioning, while a disk may take some milliseconds each.
    """
    try:
        is_roomy = shutil.disk_usage(_IN_MEMORY).free >= _ROOM * limits.scratch_bytes
    except OSError:
        return None
    return _IN_MEMORY if is_roomy and os.access(_IN_MEMORY, os.W_OK | os.X_OK) else None


async def _removed(folder: str) -> bool:
    """Removes a folder in small steps; returns whether it is gone."""
    try:
        for step, _ in enumerate(wiping(folder)):
            if step % _STEPS == 0:
                await asyncio.sleep(0)
        os.rmdir(folder)
    except FileNotFoundError:
        return not os.path.isdir(folder)
    except OSError:
        return False
    return True
