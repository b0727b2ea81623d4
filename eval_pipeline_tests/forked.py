"""Children that are forked from a process that has imported what a run needs, which takes longer than most runs.

For tests that kill runs, have several at once, or need a process of its own for what it must not leave in that of the
test. How an interpreter starts and ends, such a child does not show.
"""

import json
import multiprocessing
import os
import pkgutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.context import ForkServerContext
from multiprocessing.forkserver import ensure_running
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from eval_pipeline_tests.support import ROOT

if multiprocessing.parent_process() is None and "multiprocessing.forkserver" in " ".join(sys.orig_argv):
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command does
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    import eval_pipeline.api.evaluating
    import eval_pipeline.chain.delivering
    import eval_pipeline.cli.evaluating.running
    import eval_pipeline.providers.anthropic
    import eval_pipeline.reports.excel.workbook
    import eval_pipeline.reports.html.page
    import eval_pipeline.stages.generate
    import eval_pipeline.stages.score  # noqa: F401


class Child:
    """A running child, with what of `subprocess.Popen` the tests use."""

    def __init__(self, process: BaseProcess, log: Path) -> None:
        self._process = process
        self.log = log
        process.start()

    @property
    def pid(self) -> int:
        """Its number."""
        assert self._process.pid is not None, "it has not been started"
        return self._process.pid

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.exitcode

    def wait(self, seconds: float | None = None) -> int:
        """The exit code, once it has ended."""
        self._process.join(seconds)
        code = self._process.exitcode
        assert code is not None, f"it has not ended within {seconds:g} s"
        return code

    def send_signal(self, number: int) -> None:
        """Sends a signal, unless it has ended."""
        if self.poll() is None and self._process.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)


def forked(place: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> Child:
    """Starts a child.

    Args:
        place: `module:function`, called without arguments, as for `python -m`.
        arguments: of its command line.
        environment: what it adds to that of this process.
        log: where its output is appended.
    """
    return _started(place, arguments, {**os.environ, **environment}, (log, log), Path(os.devnull), ROOT)


def completed(
    place: str, arguments: Sequence[str], environment: Mapping[str, str], given: bytes = b""
) -> "subprocess.CompletedProcess[str]":
    """Runs a child to its end; `given` is what it reads."""
    with TemporaryDirectory() as folder:
        told, out, err = (Path(folder) / name for name in ("in", "out", "err"))
        told.write_bytes(given)
        code = _started(place, arguments, {**os.environ, **environment}, (out, err), told, Path.cwd()).wait(120)
        return subprocess.CompletedProcess([place, *arguments], code, out.read_text(), err.read_text())


def command() -> None:
    """`eval-pipeline` in a child."""
    from eval_pipeline.cli import main

    main()


def run_at_arms_length(
    command: Sequence[str], asked: bytes, environment: Mapping[str, str], heard: Callable[[int, int], None]
) -> tuple[list[Any], int, bool]:
    """Stands for the `_run` of `core.arms_length`, with what is heard at the end."""
    done = completed("eval_pipeline.core.reading.arms_length:main", (), environment, asked)
    told = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    for message in told:
        heard(*message["progress"]) if "progress" in message else None
    return [message for message in told if "progress" not in message], done.returncode, False


def fork_server() -> ForkServerContext:
    """Where children are forked that are not told by a place."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with patch.dict(os.environ):
        os.environ.pop("PYTHONPATH", None)  # what one child sees others must not
        ensure_running()
    return context


def _started(
    place: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    outputs: tuple[Path, Path],
    told: Path,
    folder: Path,
) -> Child:
    given = (place, tuple(arguments), environment, outputs, told, folder)
    return Child(fork_server().Process(target=_run, args=given), outputs[0])


def _run(
    place: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    outputs: tuple[Path, Path],
    told: Path,
    folder: Path,
) -> None:
    from eval_pipeline.cli import terminal

    for number, output in zip((1, 2), outputs, strict=True):
        with output.open("ab") as out:
            os.dup2(out.fileno(), number)
    with told.open("rb") as source:
        os.dup2(source.fileno(), 0)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    for console in (terminal.console, terminal.errors):
        console._width = int(environment["COLUMNS"]) if "COLUMNS" in environment else None
    os.chdir(folder)
    sys.argv = ["eval-pipeline", *arguments]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # where the tests run in the background, it is ignored
    pkgutil.resolve_name(place)()
