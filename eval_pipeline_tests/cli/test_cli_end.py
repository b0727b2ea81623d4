"""How the process of a command ends: at once, but not before everything that has to be done by then."""

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from eval_pipeline import __version__
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
BACKEND = "__import__('pyarrow').default_memory_pool().backend_name"
ARROW = f"import atexit; atexit.register(lambda: print({BACKEND})); {ENDING}"


def written_to(output: IO[str], lab: Lab, program: str, argument: str, **variables: str) -> tuple[int, str]:
    """Exit code and errors of a program whose output goes there."""
    command = [sys.executable, "-c", program, argument]
    environment = os.environ | lab.environment | variables
    found = subprocess.run(command, env=environment, stdout=output, stderr=subprocess.PIPE, text=True, check=False)
    return found.returncode, found.stderr


@pytest.mark.parametrize(
    ("program", "pool", "said"),
    [
        (AT_THE_END, "", "said at the end"),
        (AFTER_THE_MAIN_THREAD, "", "said by a thread"),
        (PROFILED, "", "said by a profiler"),
        (ARROW, "", "system"),  # which gives memory back
        (ARROW, "mimalloc", "mimalloc"),
    ],
)
def test_what_is_left_to_do_is_done_before_the_process_ends(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, program: str, pool: str, said: str
) -> None:
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL", raising=False)
    if pool:
        monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", pool)
    found = python(lab, "-c", program, "--version")
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == [__version__, said]


@pytest.mark.always
def test_a_failed_command_ends_with_its_code(lab: Lab) -> None:
    found = python(lab, "-c", AT_THE_END, "query", "SELECT 1")
    assert (found.returncode, found.stdout) == (2, "said at the end\n")
    assert "eval-pipeline run" in found.stderr


def test_help_in_a_file_is_plain_text_though_colours_are_wished(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """As CI servers wish them."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    found = python(lab, "-c", ENDING, "--help")
    assert (found.returncode, "sql-diff" in found.stdout, "\x1b" in found.stdout) == (0, True, False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_output_that_cannot_be_written_is_a_failure(lab: Lab) -> None:
    with open("/dev/full", "w") as full:
        code, told = written_to(full, lab, ENDING, "--version")
    assert code == 1
    assert "No space left on device" in told


def test_a_pipe_to_another_process_that_breaks_is_an_error(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object, **further: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("eval_pipeline.operations.runs.planning.plan", broken)
    lab.suite()
    lab.versions({"name": "stand-in", "provider": "oracle"})
    said = lab.cli("plan")
    assert said.code == 1
    assert "BrokenPipeError" in said.err


@pytest.mark.parametrize(
    ("program", "argument", "unbuffered"),
    [
        (ENDING, "--version", ""),
        (ENDING, "--help", ""),
        (ENDING, "--help", "1"),
        (AFTER_THE_MAIN_THREAD, "plan", ""),
    ],
)
def test_a_reader_that_stops_is_no_error(lab: Lab, program: str, argument: str, unbuffered: str) -> None:
    """As with `| head`."""
    lab.suite()
    lab.versions({"name": "stand-in", "provider": "oracle"})
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as output:
        assert written_to(output, lab, program, argument, PYTHONUNBUFFERED=unbuffered) == (0, "")
