"""Children that are forked from a process that has imported what a run needs, which takes longer than most runs.

For tests that kill runs or have several at once. How a process of its own starts and ends, such a child does not show.
"""

import multiprocessing
import os
import pkgutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path

from eval_pipeline_tests.support import ROOT

COMMAND = "eval_pipeline.cli:main"

if multiprocessing.parent_process() is None and "multiprocessing.forkserver" in " ".join(sys.orig_argv):
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command does
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    import eval_pipeline.chain.delivering
    import eval_pipeline.cli.running
    import eval_pipeline.defs.running.launch
    import eval_pipeline.providers.anthropic  # noqa: F401


class Child:
    """A running child, with what of `subprocess.Popen` the tests use."""

    def __init__(self, process: BaseProcess, log: Path) -> None:
        self._process = process
        self.log = log
        process.start()

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
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    given = (place, tuple(arguments), {**os.environ, **environment}, log)
    return Child(context.Process(target=_run, args=given), log)


def _run(place: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
    with log.open("ab") as out:
        for number in (1, 2):
            os.dup2(out.fileno(), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(ROOT)
    sys.argv = ["eval-pipeline", *arguments]
    pkgutil.resolve_name(place)()
