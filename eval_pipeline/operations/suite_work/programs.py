"""Runs a program of the user's own, within limits of time and output."""

import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from eval_pipeline.core.errors import UsageError

MOST_OUTPUT = 1 << 28
"""Limit on the bytes that the program may write to standard output, and to standard error."""
_EVERY_S = 0.05
_TAIL = 4_096


def program_output(command: Sequence[str], said: bytes, timeout_s: float, most: int = MOST_OUTPUT) -> bytes:
    """Returns what a program writes to standard output.

    The program has the rights and the environment of the user. It and the programs that it started are ended when it
    reaches a limit.

    Args:
        command: the program and its arguments.
        said: its standard input.
        timeout_s: seconds that it may take.
        most: bytes that it may write to standard output, and to standard error.

    Raises:
        UsageError: it cannot be started, fails, or reaches a limit.
    """
    shown = shlex.join(command)
    # Files, unlike pipes, need nobody who reads and writes at the same time.
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(said)
        given.seek(0)
        try:
            process = subprocess.Popen(command, stdin=given, stdout=out, stderr=err, start_new_session=True)
        except OSError as error:
            raise UsageError(f"'{shown}' cannot be started: {error.strerror or error}") from None
        try:
            _await(process, shown, timeout_s, (out, err), most)
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if process.returncode:
            last = _last_line(err)
            told = f": {last}" if last else " and wrote nothing to standard error"
            raise UsageError(f"'{shown}' ended with exit code {process.returncode}{told}")
        out.seek(0)
        return out.read()


def _await(
    process: "subprocess.Popen[bytes]", shown: str, timeout_s: float, written: Sequence[IO[bytes]], most: int
) -> None:
    ends = time.monotonic() + timeout_s
    ended = False
    while not ended:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_EVERY_S)
        ended = process.poll() is not None
        if any(os.fstat(file.fileno()).st_size > most for file in written):
            raise UsageError(f"'{shown}' wrote more than {most:,} bytes")
        if not ended and time.monotonic() > ends:
            raise UsageError(f"'{shown}' took more than {timeout_s:g} seconds")


def _last_line(file: IO[bytes]) -> str:
    """Returns the last line that is not empty, in printable characters."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL))
    lines = file.read().decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return "".join(letter if letter.isprintable() else " " for letter in last)[:300]
