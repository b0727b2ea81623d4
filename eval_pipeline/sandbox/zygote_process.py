"""A zygote as the pipeline sees it: a child process that is asked over its standard input and output."""

import asyncio
import json
import struct
import tempfile
from collections.abc import Mapping
from typing import Any, Self

from eval_pipeline.core.ids import json_text
from eval_pipeline.sandbox.jail import Launch, bwrap_launch, bwrap_path, plain_launch, readable_paths
from eval_pipeline.sandbox.limits import Limits
from eval_pipeline.sandbox.tables import NO_TABLES, PackedTables
from eval_pipeline.sandbox.tiers import BWRAP, SANDLOCK, UNSAFE

_HEAD = struct.Struct("<II")
_START_S = 60.0
_GRACE_S = 5.0
_STOP_S = 2.0


class ZygoteError(Exception):
    """The zygote does not answer, or not in the agreed form: it has to be replaced."""


class Zygote:
    """One process in a jail that runs snippets one after the other.

    Attributes:
        snippets: run so far.
    """

    def __init__(self, process: asyncio.subprocess.Process, limits: Limits, scratch: tempfile.TemporaryDirectory[str]):
        self.snippets = 0
        self._process = process
        self._limits = limits
        self._scratch = scratch
        self._tables = NO_TABLES.key

    @classmethod
    async def start(cls, tier: str, limits: Limits) -> Self:
        """Starts one and waits until it has pandas.

        Raises:
            ZygoteError: with what it said last, where it does not start.
        """
        scratch = tempfile.TemporaryDirectory(prefix="eval-scratch-", ignore_cleanup_errors=True)
        launch = _launch(tier, limits, scratch.name)
        with tempfile.TemporaryFile() as log:
            process = await asyncio.create_subprocess_exec(
                *launch.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=launch.environment,
                cwd="/",
                start_new_session=True,
            )
            zygote = cls(process, limits, scratch)
            try:
                await zygote._answer(_START_S)
            except ZygoteError as error:
                await zygote.stop()
                log.seek(0)
                words = log.read().decode(errors="replace").strip().splitlines()
                raise ZygoteError(words[-1][:300] if words else str(error)) from error
            except BaseException:  # cancelled: nobody would stop it
                await zygote.stop()
                raise
        return zygote

    async def run(self, code: str, tables: PackedTables) -> tuple[Mapping[str, Any], bytes, bytes]:
        """Runs a snippet: what the zygote told of it, what it printed, what it left as its result.

        Raises:
            ZygoteError: no answer in time; the zygote is of no use any more.
        """
        if tables.key != self._tables:
            await self._send({"op": "tables", "tables": tables.described}, tables.body)
            await self._answer(_START_S)
            self._tables = tables.key
        self.snippets += 1
        await self._send({"op": "run", "code": code})
        told, body = await self._answer(self._limits.wall_s + _GRACE_S)
        try:
            printed = told["output_bytes"]
            return told, body[:printed], body[printed:]
        except (KeyError, TypeError) as error:
            raise ZygoteError(f"an answer of the wrong form: {error!r}") from error

    async def stop(self) -> None:
        """Ends the process and everything in its jail."""
        if self._process.returncode is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                await asyncio.wait_for(self._process.wait(), _STOP_S)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
        self._scratch.cleanup()

    async def _send(self, header: Mapping[str, Any], body: bytes = b"") -> None:
        assert self._process.stdin is not None
        text = json_text(header).encode()
        self._process.stdin.write(_HEAD.pack(len(text), len(body)) + text + body)
        try:
            await self._process.stdin.drain()
        except ConnectionError as error:
            raise ZygoteError("the zygote is gone") from error

    async def _answer(self, patience_s: float) -> tuple[Mapping[str, Any], bytes]:
        assert self._process.stdout is not None
        read = self._process.stdout.readexactly
        most = self._limits.output_bytes + self._limits.result_bytes
        try:
            async with asyncio.timeout(patience_s):
                header_bytes, body_bytes = _HEAD.unpack(await read(_HEAD.size))
                if header_bytes > 1 << 16 or body_bytes > most:
                    raise ZygoteError("an answer of the wrong size")
                return json.loads(await read(header_bytes)), await read(body_bytes)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise ZygoteError("the zygote is gone") from error
        except TimeoutError as error:
            raise ZygoteError(f"no answer within {patience_s:g} s") from error
        except ValueError as error:
            raise ZygoteError(f"an answer of the wrong form: {error}") from error


def _launch(tier: str, limits: Limits, scratch: str) -> Launch:
    configuration: dict[str, Any] = {
        "wall_s": limits.wall_s,
        "memory_bytes": limits.memory_bytes,
        "output_bytes": limits.output_bytes,
        "result_bytes": limits.result_bytes,
        "scratch_bytes": limits.scratch_bytes,
        "scratch": "/scratch" if tier == BWRAP else scratch,
        "landlock": [*readable_paths(), "/dev/null"] if tier == SANDLOCK else [],
        "seccomp": tier != UNSAFE,
    }
    text = json_text(configuration)
    if tier != BWRAP:
        return plain_launch(scratch, text)
    bwrap = bwrap_path()
    assert bwrap is not None
    return bwrap_launch(bwrap, limits, text)
