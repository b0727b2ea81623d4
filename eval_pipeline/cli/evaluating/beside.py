"""Evaluates a part of the demo's suites in a process beside this one."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import IO

from eval_pipeline.core.system.supervision import SUPERVISOR, own_identity

START = "import sys; sys.argv[0] = 'eval-pipeline'; from eval_pipeline.cli import main; main()"
"""What Python runs with `-c` as the command line."""
_STOP_S = 30.0


@dataclass(frozen=True, slots=True)
class ProcessPart:
    """What one process evaluates.

    Attributes:
        suites: names of the suites.
        day: evaluation date, in ISO form: a demo may go on after midnight.
        local: whether the local model is asked, too.
    """

    suites: Sequence[str]
    day: str
    local: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a part.

    Attributes:
        problems: one sentence per problem.
        done: suite and model version of each evaluation in the record.
        said: lines that the other process wrote meanwhile.
    """

    problems: Sequence[str]
    done: Sequence[tuple[str, str]]
    said: Sequence[str] = ()


def halves(sizes: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Deals names out to two parts, the largest first, each in the order given; the second may be empty.

    Sizes only tell the order: what a model's answers and the reports of a suite take hardly depends on them.
    """
    largest_first = sorted(sizes, key=lambda name: -sizes[name])
    order = list(sizes).index
    return sorted(largest_first[::2], key=order), sorted(largest_first[1::2], key=order)


def written(outcome: Outcome) -> str:
    """Returns what the process of a part writes for the one that started it."""
    return json.dumps({"problems": list(outcome.problems), "done": list(outcome.done)})


@contextmanager
def beside(part: ProcessPart, home: str) -> Iterator[Callable[[], Outcome]]:
    """Starts the process of a part; yields a function that waits for it. It never outlives the block or this process.

    What it writes to standard error is kept until then, so that it does not mix with this process's progress bars.
    """
    if not part.suites:
        yield lambda: Outcome([], [])
        return
    # The script `eval-pipeline` does not look for modules in the current folder, so its child must not either.
    here = [] if sys.path[0] in {"", os.getcwd()} else ["-P"]
    command = [sys.executable, *here, "-c", START, "demo", "--part", json.dumps(asdict(part))]
    environment = {**os.environ, SUPERVISOR: own_identity(home)}
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as said:
        # Ctrl-C reaches all processes of a session. In one of its own this process gets one signal, and not two.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=told, stderr=said, env=environment, start_new_session=True
        )
        try:
            yield lambda: _outcome(part, process.wait(), told, said)
        finally:
            _end(process)


def _outcome(part: ProcessPart, code: int, told: IO[bytes], said: IO[bytes]) -> Outcome:
    lines = _text(said).splitlines()
    try:
        if code == 0:
            found = json.loads(_text(told))
            return Outcome(found["problems"], [(suite, version) for suite, version in found["done"]], lines)
    except (ValueError, KeyError):
        pass
    ended = f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
    why = lines[-1].removeprefix("error: ") if lines else "it said nothing"
    return Outcome([f"{', '.join(part.suites)}: their process ended with {ended}: {why}"], [], lines[:-1])


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends the process, by force if necessary; the answers it had are kept."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
