"""No test starts a service without the mark that keeps it out of `make test`; without the program it is skipped."""

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from eval_pipeline.sandbox.tiers import Tier
from eval_pipeline_tests import services
from eval_pipeline_tests.sandbox import campaign
from eval_pipeline_tests.sandbox.conftest import Boxes
from eval_pipeline_tests.support import ROOT

TESTS = """
import subprocess
from pathlib import Path

import pytest

SOFFICE = str(Path(__file__).with_name("soffice"))


@pytest.fixture(scope="module")
def office():
    subprocess.run([SOFFICE, "--headless"], check=True)


@pytest.mark.services("libreoffice")
def test_marked(office):
    subprocess.run([SOFFICE, "--headless"], check=True)


def test_begun_by_the_fixture(office):
    pass


def test_itself():
    try:
        subprocess.run([SOFFICE, "--headless"], check=True)
    except BaseException:
        pass


def test_nothing_but_others():
    subprocess.run(["true"], check=True)
"""

PARAMETERS = """
import subprocess

import pytest


@pytest.fixture(params=[pytest.param("office", marks=pytest.mark.services("libreoffice")), "file"])
def place(request):
    if request.param == "office":
        subprocess.run(["soffice"])
"""


def outcomes(folder: Path, *arguments: str, **environment: str) -> dict[str, str]:
    """How the tests above come out, by name, in the words of the report."""
    (folder / "test_them.py").write_text(TESTS)
    (folder / "test_others.py").write_text("raise ImportError('this file has no such test')\n")
    office = folder / "soffice"
    office.write_text("#!/bin/sh\n")
    office.chmod(0o700)
    command = [sys.executable, "-m", "pytest", "-p", "eval_pipeline_tests.services", "-p", "no:cacheprovider", "-c"]
    command += ["/dev/null", "-rA", "--rootdir", str(folder), *arguments]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_") and name != "CI"}
    said = subprocess.run(
        command,
        env=kept | {"PYTHONPATH": str(ROOT), "COLUMNS": "300"} | environment,
        cwd=folder,
        capture_output=True,
        text=True,
    ).stdout
    found = {}
    for line in said.splitlines():
        outcome, _, told = line.partition(" ")
        if outcome in {"PASSED", "FAILED", "SKIPPED"}:
            found[told.partition("::")[2].partition(" ")[0]] = line
    return found


def test_what_starts_one_without_the_mark_fails(tmp_path: Path) -> None:
    found = outcomes(tmp_path, "test_them.py", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert {name: told.split()[0] for name, told in found.items()} == {
        "test_marked": "PASSED",
        "test_begun_by_the_fixture": "FAILED",
        "test_itself": "FAILED",
        "test_nothing_but_others": "PASSED",
    }
    for name in ("test_begun_by_the_fixture", "test_itself"):
        assert 'mark it with @pytest.mark.services("libreoffice")' in found[name]


def test_alone_they_run_the_longest_first_without_an_import_of_other_files(tmp_path: Path) -> None:
    """Those of a fixture with the mark among them."""
    (tmp_path / "test_z.py").write_text(
        "import pytest\n@pytest.mark.services('dask', longest=True)\ndef test_long():\n    pass\n"
    )
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "conftest.py").write_text(PARAMETERS)
    (tmp_path / "sub" / "test_sub.py").write_text("def test_either(place):\n    pass\n")
    path = f"{tmp_path}:{os.environ['PATH']}"
    first, *others = outcomes(tmp_path, "-m", "services", PATH=path)
    assert (first, set(others)) == ("test_long", {"test_marked", "test_either[office]"})
    found = outcomes(tmp_path, "sub", PATH=path)
    assert {name: told.split()[0] for name, told in found.items()} == {
        "test_either[file]": "PASSED",
        "test_either[office]": "PASSED",
    }


def test_without_the_program_it_is_skipped_but_on_ci(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    asked = ("-m", "services", "test_them.py")
    (skipped,) = outcomes(tmp_path, *asked).values()
    assert "not installed: libreoffice (`make debian`)" in skipped
    (ran,) = outcomes(tmp_path, *asked, CI="true").values()
    assert ran.startswith("PASSED")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("/venv/site-packages/playwright/driver/node cli.js run-driver", {"browser"}),
        ("soffice -env:UserInstallation=file:///x --headless", {"libreoffice"}),
        ("setpriv --reuid=1 /usr/lib/postgresql/15/bin/initdb -D x", {"postgres"}),
        ("/usr/sbin/mariadbd --no-defaults", {"mariadb"}),
        ("python -c 'from eval_pipeline.cli import main; main()' dev --port 3000", {"ui"}),
        ("/bin/eval-pipeline view --port 0", {"ui"}),
        ("python -m distributed.cli.dask_worker tcp://x", {"dask"}),
        ("python -m eval_pipeline_plugins.local_model.server weights", {"model"}),
        ("python -c 'from eval_pipeline.cli import main; main()' run --suite view", set()),
        ("eval-pipeline view --export x", set()),
        ("python -c \"sys.argv = ['x', '--help']; from distributed.cli.dask_worker import main; main()\"", set()),
        ("ls /usr/lib/postgresql", set()),
    ],
)
def test_services_are_told_by_their_command_lines(command: str, expected: set[str]) -> None:
    assert services.services_of(command) == expected


@pytest.mark.parametrize(("on_ci", "outcome"), [(True, pytest.fail.Exception), (False, pytest.skip.Exception)])
def test_where_no_jail_is_a_test_of_jails_is_skipped_but_fails_on_ci(
    on_ci: bool, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true") if on_ci else monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(campaign, "TIERS", [Tier("bwrap", "none", lambda: "no namespaces", Mock())])
    for asks in (campaign.usable, lambda: Boxes(Mock()).of("none")):
        with pytest.raises(outcome, match="no namespaces"):
            asks()
