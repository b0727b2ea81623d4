"""Telling processes apart."""

import os
import subprocess
import sys

import psutil
import pytest

from eval_pipeline.core.system import processes
from eval_pipeline.core.system.processes import is_alive, mark, started


def test_a_process_is_known_by_its_beginning() -> None:
    pid, since = mark().split(" ")
    assert int(pid) == os.getpid()
    assert is_alive(int(pid), since)
    assert not is_alive(int(pid), str(int(since) + 1))
    assert is_alive(int(pid), f"{psutil.Process().create_time():.2f}"), "as 0.1.0 marked it"
    assert not is_alive(int(pid), "12345.00")
    assert not is_alive(int(pid), "")


def test_one_that_has_ended_is_not_alive_even_if_nobody_has_looked() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        since = started(child.pid)
        assert is_alive(child.pid, since)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not is_alive(child.pid, since)
    assert started(child.pid) == ""
    assert not is_alive(child.pid, since)


def test_a_step_of_the_clock_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pid, since = mark().split(" ")
    monkeypatch.setattr(psutil, "boot_time", lambda: 1.0)
    monkeypatch.setattr(processes.psutil.Process, "create_time", lambda _: 1.0)
    assert mark() == f"{pid} {since}"
    assert is_alive(int(pid), since)


@pytest.mark.parametrize("refusal", [psutil.NoSuchProcess, psutil.AccessDenied])
def test_a_process_that_cannot_be_seen_counts_as_alive(
    monkeypatch: pytest.MonkeyPatch, refusal: type[Exception]
) -> None:
    """With `hidepid`, `/proc` shows no process of another user; where it is hidden, it shows none at all."""

    def hidden(pid: int) -> psutil.Process:
        raise refusal(pid)

    since = started(os.getpid())
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    monkeypatch.setattr(processes, "_fields", lambda _: None)
    monkeypatch.setattr(psutil, "Process", hidden)
    assert started(os.getpid()) == ""
    assert is_alive(os.getpid(), since)
    assert is_alive(os.getpid(), ""), "marked by one that did not see itself"
    assert not is_alive(ended.pid, since)
    assert not is_alive(ended.pid, "")
