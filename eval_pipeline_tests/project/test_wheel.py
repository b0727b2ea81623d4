"""What people do who have no clone: install a wheel, or from git, make a project, and work with it."""

import os
import re
import shutil
import subprocess
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import httpx2
import pytest

from eval_pipeline.core.home import Home
from eval_pipeline_tests.browser.ui import UI, eventually, started_ui
from eval_pipeline_tests.project.wheels import (
    ROOT,
    Installed,
    beside,
    build,
    clean,
    interpreter,
    tool,
    uv,
    workflow_steps,
)
from eval_pipeline_tests.support import built_once

VERSIONS = ("3.11", "3.13")
PROJECT_FILES = ("pyproject.toml", "setup.py")
ASSETS = "{ assetNodes { assetKey { path } isPartitioned } }"
BACKFILL = """mutation($assets: [AssetKeyInput!]!, $names: [String!]!) { launchPartitionBackfill(backfillParams: {
  assetSelection: $assets, partitionNames: $names }) { __typename ... on PythonError { message } } }"""
SCHEDULE = """{ scheduleOrError(scheduleSelector: { repositoryLocationName: "eval_pipeline", repositoryName:
  "__repository__", scheduleName: "nightly" }) { ... on Schedule { scheduleState { ticks(limit: 9) { status } } } } }"""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (found,) = built_once(tmp_path_factory, "wheel", lambda folder: build(folder) and None).glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return beside(wheel, tmp_path_factory.mktemp("beside") / "env")


def test_the_wheel_has_the_licence_the_samples_and_types(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        told = Parser().parsestr(opened.read(metadata).decode())
        samples = "eval_pipeline/operations/project/samples/"
        shipped = {name.removeprefix(samples) for name in names if name.startswith(samples)}
        (licence,) = (name for name in names if name.endswith("licenses/LICENSE"))
        assert opened.read(licence) == (ROOT / "LICENSE").read_bytes()
        (points,) = (opened.read(name).decode() for name in names if name.endswith(".dist-info/entry_points.txt"))
    modules = {name.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".") for name in names}
    named = set(re.findall(r"= (eval_pipeline_plugins\S*):", points))
    assert named
    assert named <= modules
    data = ROOT / "data"
    tracked = subprocess.run(["git", "ls-files", "-z", "suites"], cwd=data, capture_output=True, text=True, check=True)
    assert {*filter(None, tracked.stdout.split("\0"))} | {"model_versions.yaml"} <= shipped
    assert {"eval_pipeline/py.typed", "eval_pipeline_plugins/py.typed"} <= names
    assert told["License-Expression"] == "Apache-2.0"
    classifiers = told.get_all("Classifier") or []
    assert {f"Programming Language :: Python :: {version}" for version in VERSIONS} <= set(classifiers)
    assert "Typing :: Typed" in classifiers
    assert not [name for name in names if name.startswith(("eval_pipeline_tests", "docs", "benchmarks"))]
    assert told["Version"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_in_an_empty_folder_commands_say_what_is_missing(installed: Installed, tmp_path: Path) -> None:
    done = installed.run("eval-pipeline demo", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"there is no suite in {tmp_path}/data/suites" in done.stderr


def test_names_of_commands_are_completed(installed: Installed, tmp_path: Path) -> None:
    settings = {"_EVAL_PIPELINE_COMPLETE": "complete_bash", "COMP_WORDS": "eval-pipeline comp", "COMP_CWORD": "1"}
    done = installed.run("eval-pipeline", tmp_path, **settings)
    assert (done.returncode, done.stdout.split()) == (0, ["compare"])


@pytest.mark.services("ui")
def test_the_first_ten_minutes_without_a_clone(tmp_path: Path) -> None:
    """A project is made, evaluated by its own workflow, compared, looked at, and served, below no other project.

    From git, which builds the wheel too; with the other Python than that of the tests.
    """
    python = interpreter(VERSIONS[-1])
    if python is None:
        pytest.skip(f"there is no Python {VERSIONS[-1]} on this machine")
    above = [found for folder in tmp_path.parents for name in PROJECT_FILES if (found := folder / name).exists()]
    assert not above, "Dagster would take that for the project"
    made = tool(tmp_path / "git", python)
    packages = " ".join(map(str, made.folder.glob("lib/python*/site-packages/eval_pipeline*")))
    assert made.run(f"python -W error -m compileall -q {packages}", tmp_path).returncode == 0
    assert made.run("eval-pipeline init my-evals", tmp_path).returncode == 0
    project = tmp_path / "my-evals"
    uv("venv", "--quiet", "--python", python, str(project / ".venv"))  # as `setup-uv` does
    installed = Installed(project / ".venv")
    evaluates_by_its_workflow(installed, project)
    shows_the_answers(installed, project)
    with started_ui(
        [str(installed.folder / "bin" / "eval-pipeline")],
        project,
        installed.settings(EVAL_NIGHTLY="1", EVAL_NIGHTLY_CRON="* * * * *"),
        Home(project / ".eval", project / "data"),
        tmp_path / "dev.log",
    ) as ui:
        backfills_and_ticks(ui)


def evaluates_by_its_workflow(installed: Installed, project: Path) -> None:
    """Runs every step of the project's workflow as it is written; then its gate with a bar that is too high."""
    settings, steps = workflow_steps(project)
    assert [step.split()[:2] for step in steps] == [
        ["uv", "pip"],
        *(["eval-pipeline", name] for name in ("validate", "run", "run", "compare")),
    ]
    for step in steps:
        done = installed.run(step, project, **settings)
        assert done.returncode == 0, f"{step}\n{done.stdout}{done.stderr}"
    assert "simulated-strong" in (project / "comparison.md").read_text()
    again = installed.run(steps[3].replace("correct=0.7", "correct=0.999"), project, **settings)
    assert again.returncode == 1
    assert "the gate is 99.9%" in again.stderr


def shows_the_answers(installed: Installed, project: Path) -> None:
    command = [str(installed.folder / "bin" / "eval-pipeline"), "view", "--port", "0"]
    with subprocess.Popen(command, cwd=project, env=installed.settings(), stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        address = re.search(r"http://\S+", child.stdout.readline())
        assert address
        with httpx2.Client(follow_redirects=True) as client:
            assert "tickets_sample" in client.get(address[0]).text
        child.terminate()


def backfills_and_ticks(ui: UI) -> None:
    """The assets are listed, a backfill of both model versions succeeds, and the daemon asks for the night's runs."""
    assets = [node["assetKey"]["path"] for node in ui.query(ASSETS)["assetNodes"] if node["isPartitioned"]]
    assert {"generations", "turn_metrics", "statistics", "report"} <= {name for _, name in assets}
    chosen = [{"path": path} for path in assets]
    asked = ui.query(BACKFILL, assets=chosen, names=["simulated-strong", "simulated-weak"])["launchPartitionBackfill"]
    assert asked["__typename"] == "LaunchBackfillSuccess", asked

    def ended() -> bool:
        (backfill,) = ui.backfills()
        assert backfill["status"] not in {"FAILED", "CANCELED", "COMPLETED_FAILED"}, ui.log.read_text()
        return backfill["status"] == "COMPLETED_SUCCESS"

    eventually(ended, ui.log.read_text)
    ticks = eventually(lambda: ui.query(SCHEDULE)["scheduleOrError"]["scheduleState"]["ticks"], ui.log.read_text)
    # On a slow machine there may be a second tick of the date, which asks for nothing.
    assert {tick["status"] for tick in ticks} <= {"STARTED", "SUCCESS", "SKIPPED"}
    eventually(lambda: ui.runs(**{"dagster/schedule_name": "nightly"}), ui.log.read_text)


@pytest.mark.soak
@pytest.mark.parametrize("version", VERSIONS)
def test_every_sample_in_a_clean_environment(wheel: Path, version: str, tmp_path: Path) -> None:
    """With all requirements installed anew: every sample suite and `demo`."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    made = clean(f"{wheel}[charts,pandas,sdmx]", tmp_path / "env", python)
    samples = [path.name for path in sorted((ROOT / "data" / "suites").iterdir())]
    chosen = " ".join(f"--sample {name}" for name in samples)
    assert made.run(f"eval-pipeline init my-evals {chosen}", tmp_path).returncode == 0
    project = tmp_path / "my-evals"
    done = made.run("eval-pipeline demo", project, timeout=1800)
    assert done.returncode == 0, done.stderr
    assert all(f"{name} · 95% intervals" in done.stdout for name in samples)
    checked = made.run("eval-pipeline doctor", project)
    assert checked.returncode == 0, checked.stdout


def test_git_ignores_what_runs_write(installed: Installed, tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    installed.run("eval-pipeline init . && git init -q . && mkdir .eval && touch .eval/x evals.xml", tmp_path)
    status = installed.run("git status --porcelain --untracked-files=all", tmp_path, HOME=os.fspath(tmp_path)).stdout
    assert "data/model_versions.yaml" in status
    assert ".eval" not in status
    assert "evals.xml" not in status
