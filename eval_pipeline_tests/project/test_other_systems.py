"""What differs on macOS, where tests do not run: each branch for it is gone through on Linux."""

import resource
import subprocess
import sys
import threading

import pytest

from eval_pipeline.core.reading import arms_length
from eval_pipeline.core.system import processes
from eval_pipeline.core.system.processors import processors
from eval_pipeline.sandbox.diagnosis import diagnose
from eval_pipeline.sandbox.sql import child, process
from eval_pipeline.sandbox.tiers import NoSandboxError, allowed_tiers


@pytest.fixture(autouse=True)
def mac(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(processes, "_LOOK_S", 0.01)
    monkeypatch.setattr(process, "_LOOK_S", 0.01)
    for name in ("sched_getaffinity", "pidfd_open", "waitid"):
        monkeypatch.delattr(f"os.{name}")


def test_there_are_as_many_processors_as_the_machine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 10)
    assert processors() <= 10


def test_the_end_of_a_process_is_noticed() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        looking = threading.Thread(target=processes.wait_for_end, args=(child.pid, lambda: child.poll() is None))
        looking.start()
        reaping = threading.Thread(target=process._reaped, args=(child,))
        reaping.start()
        child.kill()
        looking.join()
        reaping.join()
        assert child.returncode == -9


def test_no_limit_is_set_that_macos_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []
    monkeypatch.setattr(resource, "setrlimit", lambda kind, _: limits.append(kind))
    arms_length._limit()
    child._limit(1 << 20)
    assert resource.RLIMIT_AS not in limits
    assert {resource.RLIMIT_CPU, resource.RLIMIT_FSIZE} <= {*limits}


def test_code_of_models_does_not_run_and_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for asked in ("", "unsafe"):
        monkeypatch.setenv("EVAL_SANDBOX", asked)
        with pytest.raises(NoSandboxError, match=r"^code that models write runs on Linux only: [^.]*$"):
            allowed_tiers()
    assert diagnose().remedy.startswith("evaluate suites with such code in a container")
