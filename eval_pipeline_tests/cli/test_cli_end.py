"""How the process of a command ends: at once, but not before everything that has to be done by then."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eval_pipeline_tests.support import Lab, python

ENDING = "from eval_pipeline.cli import main; main()"
AT_THE_END = f"import atexit; atexit.register(print, 'said at the end'); {ENDING}"
AFTER_THE_MAIN_THREAD = f"""
import threading
def work():
    threading.main_thread().join()
    print("said by a thread")
threading.Thread(target=work).start()
{ENDING}
"""
PROFILED = f"""
import cProfile
with cProfile.Profile() as profile:
    try:
        {ENDING}
    finally:
        print("said by a profiler")
"""


@pytest.fixture
def planned(lab: Lab) -> Lab:
    """A home in which `plan` has something to say."""
    lab.suite()
    lab.versions({"name": "stand-in", "provider": "oracle"})
    return lab


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (AT_THE_END, "said at the end"),
        (AFTER_THE_MAIN_THREAD, "said by a thread"),
        (PROFILED, "said by a profiler"),
    ],
)
def test_what_is_left_to_do_is_done_before_the_process_ends(planned: Lab, program: str, said: str) -> None:
    found = python(planned, "-c", program, "plan")
    assert found.returncode == 0, found.stderr
    first, *_, last = found.stdout.splitlines()
    assert first.startswith("small · ")
    assert last == said


def test_arrow_gives_memory_back_and_may_be_told_otherwise(planned: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = "__import__('pyarrow').default_memory_pool().backend_name"
    program = f"import atexit; atexit.register(lambda: print({backend})); {ENDING}"
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL", raising=False)
    assert python(planned, "-c", program, "plan").stdout.splitlines()[-1] == "system"
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "mimalloc")
    assert python(planned, "-c", program, "plan").stdout.splitlines()[-1] == "mimalloc"


def test_a_failed_command_ends_with_its_code(planned: Lab) -> None:
    found = python(planned, "-c", AT_THE_END, "plan", "--suite", "nowhere")
    assert found.returncode == 2
    assert found.stdout == "said at the end\n"
    assert "nowhere" in found.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_output_that_cannot_be_written_is_a_failure(planned: Lab) -> None:
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            [sys.executable, "-c", ENDING, "plan"],
            env=os.environ | planned.environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert found.returncode == 1
    assert "No space left on device" in found.stderr


BROKEN_INSIDE = f"""
import eval_pipeline.operations.planning as planning
def broken(*arguments, **further):
    raise BrokenPipeError(32, "Broken pipe")
planning.plan = broken
{ENDING}
"""


def test_a_pipe_to_another_process_that_breaks_is_an_error(planned: Lab) -> None:
    found = python(planned, "-c", BROKEN_INSIDE, "plan")
    assert found.returncode == 1
    assert "BrokenPipeError" in found.stderr


@pytest.mark.parametrize("program", [ENDING, AFTER_THE_MAIN_THREAD])
@pytest.mark.parametrize("buffered", ["", "1"])
def test_a_reader_that_stops_is_no_error(planned: Lab, program: str, buffered: str) -> None:
    """As with `| head`."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as output:
        found = subprocess.run(
            [sys.executable, "-c", program, "plan"],
            env=os.environ | planned.environment | {"PYTHONUNBUFFERED": buffered},
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (found.returncode, found.stderr) == (0, "")
