"""Every attack of attacks.py, on each tier that can run here, as the present user and as an ordinary one."""

import asyncio
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eval_pipeline.sandbox.python_sandbox import PythonSandbox
from eval_pipeline.sandbox.tiers import UNSAFE_TIER
from eval_pipeline_tests.sandbox.attacks import REACHING
from eval_pipeline_tests.sandbox.campaign import LIMITS, PLANTED, TITLES, campaign, planted, reached, tier_of
from eval_pipeline_tests.sandbox.conftest import Boxes

ORDINARY = "65534"
REPOSITORY = Path(__file__).parents[2]
NOT_FOR_THE_UNHELD = {
    # These would end or stop the test itself, or reach for what is the machine's.
    *("program", "spawn", "overwriting", "truncating", "removing", "moving", "permissions", "attributes"),
    *("device", "core pattern", "system request", "mount", "new mount", "namespace", "root", "shared memory"),
    *("semaphores", "messages", "message queue", "ptrace", "keys", "session"),
}


@pytest.mark.parametrize("title", TITLES)
def test_no_attack_reaches_its_target(title: str, tmp_path: Path, boxes: Boxes) -> None:
    in_full = title != "bwrap (wheel)" or tier_of("bwrap (system)").why_not() is not None
    assert boxes.wait(campaign(boxes.of(title), tmp_path, in_full=in_full)) == {}


@contextmanager
def python_of_an_ordinary_user() -> Iterator[tuple[str, Path]]:
    """An interpreter with our packages that such a user can run, and a folder that is theirs."""
    base = getattr(sys, "_base_executable", sys.executable)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    with tempfile.TemporaryDirectory() as name:
        folder, library = Path(name), Path(name) / "lib" / version
        folder.chmod(0o755)
        (folder / "bin").mkdir()
        library.mkdir(parents=True)
        (library / "site-packages").symlink_to(sysconfig.get_paths()["purelib"])
        (folder / "own").mkdir()
        os.chown(folder / "own", int(ORDINARY), int(ORDINARY))
        for candidate in (base, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
            (folder / "pyvenv.cfg").write_text(f"home = {Path(candidate).parent}\n")
            (folder / "bin/python").unlink(missing_ok=True)
            (folder / "bin/python").symlink_to(candidate)
            tried = as_ordinary_user([str(folder / "bin/python"), "-c", "import pandas, pytest, eval_pipeline.sandbox"])
            if tried.returncode == 0:
                yield str(folder / "bin/python"), folder / "own"
                return
        pytest.skip(f"no interpreter with the packages that an ordinary user can run: {tried.stderr.strip()[-200:]}")


def as_ordinary_user(command: list[str]) -> "subprocess.CompletedProcess[str]":
    # `env` opens the interpreter: setpriv itself still has root's capabilities when it opens what it starts.
    become = ["setpriv", "--reuid", ORDINARY, "--regid", ORDINARY, "--clear-groups", "env"]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [*become, *command], env=environment, cwd="/", capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("extent", ["short", pytest.param("full", marks=pytest.mark.soak)])
def test_no_attack_reaches_its_target_where_an_ordinary_user_runs_it(extent: str) -> None:
    with python_of_an_ordinary_user() as (python, folder):
        ran = as_ordinary_user([python, "-m", "eval_pipeline_tests.sandbox.campaign", str(folder), extent])
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    if absent := {title: why_not for title, why_not in found.items() if isinstance(why_not, str)}:
        warnings.warn(f"not tried: {absent}", stacklevel=1)
    assert {title: wrong for title, wrong in found.items() if title not in absent and wrong} == {}
    assert found.keys() == set(TITLES)


def test_the_same_attacks_reach_their_targets_where_nothing_holds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the attacks are real: what is refused above is refused by the tier."""
    monkeypatch.setenv(PLANTED, "planted in the environment")
    tried = {name: code for name, code in REACHING.items() if name not in NOT_FOR_THE_UNHELD}
    monkeypatch.setattr("eval_pipeline_tests.sandbox.campaign.REACHING", tried)

    async def unheld() -> set[str]:
        async with PythonSandbox(LIMITS, zygotes=1, tiers=[UNSAFE_TIER]) as box:
            return set(await reached(box, targets))

    with pytest.raises(AssertionError), planted(tmp_path) as targets:  # what is planted does not stay as it was
        found = asyncio.run(unheld())
    expected = {"planted file", "writing outside", "times", "package", "pipes of the zygote", "memory of the zygote"}
    expected |= {"environment of the pipeline", "socket", "loopback", "fork", "signal to the pipeline"}
    expected |= {"signal by a file", "anonymous file", "limits of the zygote", "outliving the zygote"}
    assert expected <= found
    # The environment is cleared in every tier.
    assert "environment" not in found
