"""A real scheduler and real workers on this machine, as processes of their own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from eval_pipeline_tests.support import ROOT

_START_S = 300.0
QUIET = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")
"""Without the second, what a service tells by HTTP is there for everybody, whatever its `--host`."""


def waited(found: Callable[[], Any], seconds: float = _START_S) -> Any:
    end = time.monotonic() + seconds
    while not (it := found()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
    return it


class Services:
    """A scheduler, and workers of one process and thread each; `options`: further ones of `scheduler` and `worker`."""

    def __init__(self, folder: Path, options: Mapping[str, Sequence[str]] | None = None) -> None:
        self.folder, self.file, self.options = folder, folder / "scheduler.json", options or {}
        self.children: list[subprocess.Popen[bytes]] = []
        place = ("--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(self.file))
        self._start("scheduler", *place, *self.options.get("scheduler", ()))
        waited(self.file.exists)
        self.url = str(json.loads(self.file.read_text())["address"])

    def worker(self) -> subprocess.Popen[bytes]:
        return self._start(
            "worker", self.url, "--host", "127.0.0.1", "--nworkers", "1", "--nthreads", "1",
            "--local-directory", str(self.folder), *self.options.get("worker", ()),
        )  # fmt: skip

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{arguments[0]}.log").open("ab")
        kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        command = [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:], *QUIET]
        environment = kept | {"PYTHONPATH": str(ROOT)}
        child = subprocess.Popen(command, cwd=self.folder, env=environment, stdout=log, stderr=log)
        self.children.append(child)
        return child

    def listening(self) -> list[str]:
        """The addresses on which these processes accept connections."""
        every = [one for child in self.children for one in (psutil.Process(child.pid), *_family(child))]
        found = [place for one in every for place in one.net_connections("inet") if place.status == psutil.CONN_LISTEN]
        return [place.laddr.ip for place in found]

    def end(self) -> None:
        for child in reversed(self.children):
            family = _family(child)
            child.kill()
            child.wait()
            for one in family:
                if one.is_running():
                    one.kill()


def _family(child: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    return psutil.Process(child.pid).children(recursive=True) if child.poll() is None else []
