"""Runs the llama.cpp server as a child process that ends with its parent."""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Self

from eval_pipeline.providers.base import FatalCallError

_START_S = 60.0
_STOP_S = 5.0


class LocalServer:
    """A running server.

    Attributes:
        address: the address on which it listens.
    """

    def __init__(self, process: asyncio.subprocess.Process, address: str) -> None:
        self._process = process
        self.address = address

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.returncode is None

    @classmethod
    async def start(cls, weights: Path, options: Mapping[str, int]) -> Self:
        """Starts a server and waits until it listens.

        Args:
            weights: a GGUF file.
            options: command-line options of `server`.

        Raises:
            FatalCallError: the server does not start; the message contains its last output.
        """
        command = [sys.executable, "-m", "eval_pipeline_plugins.local_model.server", str(weights)]
        command += [f"--{name}={value}" for name, value in options.items()]
        with tempfile.TemporaryFile() as log:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=child_environment(),
            )
            try:
                assert process.stdout is not None
                line = await asyncio.wait_for(process.stdout.readline(), _START_S)
                return cls(process, json.loads(line)["address"])
            except (TimeoutError, ValueError, KeyError) as error:
                await _end(process)
                raise FatalCallError(f"the local server did not start: {_last_words(log)}") from error
            except BaseException:  # on cancellation, nobody else would stop the process
                await _end(process)
                raise

    async def stop(self) -> None:
        """Ends the process."""
        await _end(self._process)


def child_environment() -> dict[str, str]:
    """Returns the child's environment: what Python and the dynamic linker need, without secrets."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV")
    return {name: os.environ[name] for name in kept if name in os.environ}


async def _end(process: asyncio.subprocess.Process) -> None:
    """Closes the child's standard input, which makes it end, and kills it if it does not."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), _STOP_S)
    except TimeoutError:
        process.kill()
        await process.wait()


def _last_words(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"
