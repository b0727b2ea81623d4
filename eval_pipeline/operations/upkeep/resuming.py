"""Resuming a run that ended early: a process of its own is asked for the same, and the journal has what is known."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from eval_pipeline.core.covering.cost_limit import CostLimit
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.core.system.processes import host, started
from eval_pipeline.store.durable import locked
from eval_pipeline.workspace.noting.noted import partition_of
from eval_pipeline.workspace.watching.running import seen_one, why_not_writable
from eval_pipeline.workspace.watching.status import RUNNING, Speed, status_of
from eval_pipeline.workspace.watching.watch import output_path, status_path, write_status

PROGRAM = "eval_pipeline.api.resuming"
"""The module that is run, with the id of the run as its argument."""


def partitions_of(request: Mapping[str, Any]) -> list[Partition]:
    """Returns the evaluations that a run was asked for."""
    return [partition_of(told) for told in request["partitions"]]


def limit_of(request: Mapping[str, Any]) -> CostLimit | None:
    """Returns the limit on what a run spends: under the same account, so that what was spent before counts."""
    return None if request["limit"] is None else CostLimit(*request["limit"])


def resume(home: Home, known_as: str) -> None:
    """Starts a process that goes on with a run; it does not end with this one.

    Raises:
        UsageError: the run goes on, it was another host's, or the home cannot be written from here.
    """
    if why := why_not_writable(home):
        raise UsageError(why)
    with locked(home.running / ".resuming", 10):
        found = seen_one(home, known_as)
        if found.runs:
            raise UsageError("this run goes on already")
        if found.host:
            raise UsageError(f"this run was started on {found.host}; resume it there")
        if not found.status.request.get("partitions"):
            raise UsageError("it is not known what this run was asked for; start it again where it was started")
        environment = {**os.environ, "EVAL_HOME": home.place, "EVAL_DATA": str(home.data)}
        with output_path(home, known_as).open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", PROGRAM, known_as],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        # Until the process has written for itself, it is known as its successor, with what is done already.
        process_mark, now = f"{host()} {process.pid} {started(process.pid)}", time.time()
        told = replace(found.status, state=RUNNING, process=process_mark, began=now, at=now, pace=Speed(), problems=[])
        write_status(home, told if told.asks else replace(told, step=""))


def request_of(home: Home, known_as: str) -> Mapping[str, Any]:
    """Returns what a run was asked for. Raises UsageError if nothing is known of it."""
    try:
        return status_of(status_path(home, known_as).read_text("utf-8")).request
    except (OSError, ValueError) as error:
        raise UsageError("nothing is known of this run any more") from error
