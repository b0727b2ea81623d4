"""A zygote as seen by the pipeline.

It is a child process that gets requests on standard input and answers on standard output.
"""

import asyncio
import json
import os
import struct
import tempfile
from collections.abc import Mapping
from typing import Any, Self

from eval_pipeline.core.ids import json_text
from eval_pipeline.sandbox.inside.scratch import wipe
from eval_pipeline.sandbox.limits import Limits
from eval_pipeline.sandbox.packed_tables import NO_TABLES, PackedTables
from eval_pipeline.sandbox.tiers import Tier

_HEAD = struct.Struct("<II")
_START_S = 60.0
_GRACE_S = 30.0  # for the work after a snippet on a busy machine; the zygote itself enforces the time limit
_MOST_HEADER = 1 << 16
_TRIES = 100


class ZygoteError(Exception):
    """The zygote does not answer, or its answer has the wrong form; it has to be replaced."""


class ZygoteProcess:
    """One process in a jail that runs snippets one after the other.

    Attributes:
        snippets: how many it has run.
        tables: key of the tables that it has.
        retiring: whether it only works until another one is ready.
    """

    def __init__(self, process: asyncio.subprocess.Process, limits: Limits, scratch: str) -> None:
        self.snippets = 0
        self.retiring = False
        self.tables = NO_TABLES.key
        self._process = process
        self._limits = limits
        self._scratch = scratch

    @classmethod
    async def start(cls, tier: Tier, limits: Limits) -> Self:
        """Starts a zygote and waits until it has imported pandas.

        Raises:
            ZygoteError: it does not start; the message contains its last output.
        """
        scratch = tempfile.mkdtemp(prefix="eval-scratch-") if not tier.separate else ""
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
            except OSError as error:
                if scratch:
                    os.rmdir(scratch)
                raise ZygoteError(str(error)) from error
            zygote = cls(process, limits, scratch)
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
        self, code: bytes, wall_s: float, tests: bytes | None = None
    ) -> tuple[Mapping[str, Any], bytes, bytes]:
        """Runs a snippet; returns what the zygote observed, what the snippet printed, and its result.

        Args:
            code: UTF-8.
            wall_s: seconds it may take.
            tests: what `inside.zygote` reads before the code, to run it in a separate process.

        Raises:
            ZygoteError: there was no answer in time; the zygote can no longer be used.
        """
        self.snippets += 1
        if tests is None:
            await self._send({"op": "run", "wall_s": wall_s}, code)
        else:
            await self._send({"op": "check", "wall_s": wall_s, "tests_bytes": len(tests)}, tests + code)
        seen, body = await self._answer(wall_s + _GRACE_S)
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
        for _ in range(_TRIES if self._scratch else 0):  # its snippet is killed too, but may take a moment to disappear
            if not os.path.isdir(self._scratch) or (wipe(self._scratch) and _removed(self._scratch)):
                return
            await asyncio.sleep(0.02)

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


def _removed(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except OSError:
        return False
    return True
