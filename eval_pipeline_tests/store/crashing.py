"""Publishes in processes that die at one step each; started by `test_catalog`.

A step is what Python tells its audit hooks about files: opening for writing, renaming, linking, removing.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import duckdb  # noqa: F401  # before the processes are forked

from eval_pipeline.store.catalog import sweeping
from eval_pipeline.store.published.publish import publish
from eval_pipeline.store.record import Record
from eval_pipeline_tests.store.samples import TRACKS

STEPS = {"open", "os.rename", "os.link", "os.remove", "os.chmod", "os.truncate", "os.mkdir"}
DIED = 17


def kind(event: str, arguments: tuple[object, ...]) -> str | None:
    """Returns the kind of a step: what happens to which kind of file; None for reading."""
    if event not in STEPS or not isinstance(arguments[0], str | os.PathLike):
        return None
    if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
        return None
    path = Path(os.fspath(arguments[0]))
    folder = path.parent.name if path.parent.parent.name != "parts" else "parts"
    return f"{event} {folder} {path.suffix if folder != 'home' else path.name}".strip()


def publish_until(home: Path, wanted: str | None) -> list[str]:
    """Publishes and dies before the first step of that kind; returns the kinds of steps."""
    seen: list[str] = []

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in STEPS:
            step = kind(event, arguments)
            if step is not None and step == wanted:
                os._exit(DIED)
            if step is not None and step not in seen:
                seen.append(step)

    sweeping._OPENING_S = 0.0  # parts are removed at once
    sys.addaudithook(hook)
    publish(Record(home / "record"), home / "eval.duckdb", TRACKS)
    return seen


def in_a_child(home: Path, wanted: str | None) -> tuple[int, list[str]]:
    """Returns exit code and steps of a publishing in a process of its own."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(writing, json.dumps(publish_until(home, wanted)).encode())
        os._exit(0)
    os.close(writing)
    _, status = os.waitpid(pid, 0)
    with os.fdopen(reading) as told:
        return os.waitstatus_to_exitcode(status), json.loads(told.read() or "[]")


def main(home: Path) -> None:
    """For each line that it reads, publishes and dies at that kind of step, and tells the result.

    An empty line is no step. Before each, the home is made what it was at the beginning.
    """
    first = home.with_name("first")
    shutil.copytree(home, first)
    for line in sys.stdin:
        shutil.rmtree(home)
        shutil.copytree(first, home)
        print(json.dumps(in_a_child(home, line.strip() or None)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
