"""What a model writes is read in time that grows with its length, not its square, and without running out of stack."""

import subprocess
import sys

import pytest

resource = pytest.importorskip("resource", reason="CPU time can be limited on POSIX systems only")
_CPU_S = 60
"""Several times what all texts take together; where the square was taken, one of them took longer."""


def test_long_texts_are_read_in_time():
    done = subprocess.run(
        [sys.executable, "-m", "eval_pipeline_tests.tracks.long_texts"],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S)),
    )
    read = done.stdout.splitlines()
    assert read[-1:] == ["all read"], f"stopped at {read[-1:]}: {done.stderr[-500:]}"
