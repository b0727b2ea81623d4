"""The real UI on a home: webserver and daemon as `eval-pipeline dev` starts them."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from eval_pipeline.core.home import Home
from eval_pipeline.defs.automation.jobs import COMPARE
from eval_pipeline.web.guard import token_of
from eval_pipeline_tests.support import ROOT, Lab

T = TypeVar("T")
# Long, as machines of CI may be slow and crowded; who finds what he waits for waits no longer.
PATIENCE_S = 1200.0
STOP_S = 30.0

LOADED = """{ workspaceOrError { ... on Workspace { locationEntries { name locationOrLoadError { __typename
  ... on PythonError { message } } } } } }"""
RUNS = """{ runsOrError(limit: 100) { ... on Runs { results { runId status jobName tags { key value } } } } }"""
BACKFILLS = """{ partitionBackfillsOrError(limit: 10) { ... on PartitionBackfills
  { results { id status partitionNames } } } }"""
SCHEDULE = """{ scheduleOrError(scheduleSelector: { repositoryLocationName: "eval_pipeline", repositoryName:
  "__repository__", scheduleName: "nightly" }) { ... on Schedule { scheduleState
  { id status ticks(limit: 1) { status } } } } }"""
STOP = """mutation($id: String!) { stopRunningSchedule(id: $id) { ... on ScheduleStateResult
  { scheduleState { status } } } }"""


class UI:
    """A running UI.

    Attributes:
        url: of the webserver.
        log: what it and its children printed.
    """

    def __init__(self, url: str, log: Path, home: Home) -> None:
        self.url = url
        self.log = log
        self._home = home

    @property
    def token(self) -> str:
        """What opens it."""
        return token_of(self._home.ui_token)

    def query(self, text: str, **variables: Any) -> Any:
        """The data that GraphQL answers with."""
        asked = {"query": text, "variables": variables}
        told = {"Authorization": f"Bearer {self.token}"}
        # Without TLS no certificates are read, which takes most of the time of who asks again and again.
        answer = httpx2.post(f"{self.url}/graphql", json=asked, timeout=120.0, headers=told, verify=False).json()
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    def runs(self, **tags: str) -> list[dict[str, Any]]:
        """Runs that have these tags, the newest first, with their tags as a mapping; none that only compares."""
        return [run for run in self._runs() if tags.items() <= run["tags"].items() and run["jobName"] != COMPARE]

    def comparing_runs(self) -> list[dict[str, Any]]:
        """Runs that only compare, the newest first, with their tags as a mapping."""
        return [run for run in self._runs() if run["jobName"] == COMPARE]

    def _runs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.query(RUNS)["runsOrError"]["results"]
        for run in found:
            run["tags"] = {tag["key"]: tag["value"] for tag in run["tags"]}
        return found

    def backfills(self) -> list[dict[str, Any]]:
        """Backfills, the newest first."""
        return list(self.query(BACKFILLS)["partitionBackfillsOrError"]["results"])

    def schedule(self) -> dict[str, Any]:
        """The state of the nightly schedule, with its last tick."""
        return dict(self.query(SCHEDULE)["scheduleOrError"]["scheduleState"])

    def stop_schedule(self) -> None:
        """Switches the nightly schedule off for good, after a tick; the next one would be a minute later."""

        def stopped_for_good() -> bool:
            # The daemon notes after a tick how far it came, in a state that it read before: that may undo a stop.
            self.query(STOP, id=self.schedule()["id"])
            time.sleep(3.0)
            now = self.schedule()
            return (now["status"], now["ticks"][0]["status"]) == ("STOPPED", "SUCCESS")

        eventually(stopped_for_good)


def eventually(look: Callable[[], T | None], why: Callable[[], str] = str, seconds: float = PATIENCE_S) -> T:
    """What `look` finds once it finds something; fails after so many seconds."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, f"nothing within {seconds:g} s; {why()}"
        time.sleep(1.0)
    return found


@contextmanager
def running_ui(lab: Lab, log: Path, more: Mapping[str, str], port: int = 0) -> Iterator[UI]:
    """The UI of a lab while the context lasts."""
    environment = os.environ | lab.environment | more
    environment.pop("PYTEST_CURRENT_TEST", None)
    command = [sys.executable, "-c", "from eval_pipeline.cli import main; main()"]
    with started_ui(command, ROOT, environment, lab.home, log, port) as ui:
        yield ui


@contextmanager
def started_ui(
    program: Sequence[str], place: Path, environment: Mapping[str, str], home: Home, log: Path, port: int = 0
) -> Iterator[UI]:
    """The UI that a program serves from a folder; ended as an init system does it, with everything that it started."""
    port = port or free_port()
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*program, "dev", "--port", str(port)],
            env=environment,
            cwd=place,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        ui = UI(f"http://127.0.0.1:{port}", log, home)
        try:
            eventually(lambda: process.poll() is not None or _is_loaded(ui), log.read_text)
            assert process.poll() is None, log.read_text()
            yield ui
        finally:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_S)
            _end_group(process.pid)
            process.wait()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _is_loaded(ui: UI) -> bool:
    try:
        entries = ui.query(LOADED)["workspaceOrError"]["locationEntries"]
    except (httpx2.TransportError, json.JSONDecodeError):
        return False
    loaded = [entry["locationOrLoadError"] for entry in entries]
    assert not any(found and found["__typename"] == "PythonError" for found in loaded), loaded
    return bool(loaded) and all(loaded)


def _end_group(group: int) -> None:
    """Ends what is left of a session that we started."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
