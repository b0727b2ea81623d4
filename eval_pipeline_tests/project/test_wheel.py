"""The wheel outside the clone: from an empty folder to an evaluated project, by the commands of its own workflow."""

import os
import shutil
import subprocess
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from eval_pipeline_tests.project.wheels import ROOT, Installed, beside, build, clean, interpreter, workflow_commands
from eval_pipeline_tests.support import built_once

VERSIONS = ("3.11", "3.13")
SMALL = " --sample-size 6"
READ_ALL = """
import ast, pathlib, sys, warnings
warnings.simplefilter("error")
paths = [*pathlib.Path(sys.argv[1]).rglob("*.py")]
[compile(path.read_bytes(), path, "exec", ast.PyCF_ONLY_AST) for path in paths]
print(len(paths))
"""


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
    data = ROOT / "data"
    tracked = subprocess.run(["git", "ls-files", "-z", "suites"], cwd=data, capture_output=True, text=True, check=True)
    assert {*filter(None, tracked.stdout.split("\0"))} | {"model_versions.yaml"} <= shipped
    assert "eval_pipeline/py.typed" in names
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


def test_a_new_project_is_evaluated_by_its_own_workflow(installed: Installed, tmp_path: Path) -> None:
    assert installed.run("eval-pipeline init my-evals", tmp_path).returncode == 0
    evaluates_by_its_workflow(installed, tmp_path / "my-evals", small=True)
    assert not list(installed.folder.rglob("samples/**/*.pyc"))


def evaluates_by_its_workflow(installed: Installed, project: Path, *, small: bool) -> None:
    """Runs every command of the project's workflow as it is written; `small`: on a part of the suite."""
    settings, commands = workflow_commands(project)
    assert [command.split()[1] for command in commands] == ["validate", "run", "run", "compare"]
    for command in commands:
        # A part of the suite is too small for the gate of the workflow, and for its baseline.
        part = small and command.split()[1] == "run"
        written = command.replace("correct=0.7", "correct=0.1") + SMALL if part else command
        done = installed.run(written, project, **settings)
        assert done.returncode == 0, f"{written}\n{done.stdout}{done.stderr}"
    again = installed.run(commands[2].replace("correct=0.7", "correct=0.999") + SMALL * small, project, **settings)
    assert again.returncode == 1
    assert "correct is 0." in again.stderr
    assert "the gate is 0.999" in again.stderr


@pytest.mark.soak
@pytest.mark.parametrize("version", VERSIONS)
def test_the_wheel_in_a_clean_environment(wheel: Path, version: str, tmp_path: Path) -> None:
    """With all requirements installed anew: every sample suite, `demo` and the workflow."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    made = clean(wheel, tmp_path / "env", python)
    samples = [path.name for path in sorted((ROOT / "data" / "suites").iterdir())]
    chosen = " ".join(f"--suite {name}" for name in ["finqa_sample", *samples])
    assert made.run(f"eval-pipeline init my-evals {chosen}", tmp_path).returncode == 0
    project = tmp_path / "my-evals"
    done = made.run("eval-pipeline demo", project, timeout=1800)
    assert done.returncode == 0, done.stderr
    assert all(f"{name} · 95% intervals" in done.stdout for name in samples)
    evaluates_by_its_workflow(made, project, small=False)
    checked = made.run("eval-pipeline doctor", project)
    assert checked.returncode == 0, checked.stdout


def test_the_syntax_is_that_of_every_version(wheel: Path, tmp_path: Path) -> None:
    """Interpreters that are here read every module; those that are missing are listed by the skip."""
    found = {version: interpreter(version) for version in VERSIONS[1:]}
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(tmp_path)
    for python in filter(None, found.values()):
        done = subprocess.run([python, "-c", READ_ALL, tmp_path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) > 500
    if missing := [version for version, python in found.items() if python is None]:
        pytest.skip(f"untried, since they are not on this machine: Python {', '.join(missing)}")


def test_git_ignores_what_runs_write(installed: Installed, tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    installed.run("eval-pipeline init . && git init -q . && mkdir .eval && touch .eval/x evals.xml", tmp_path)
    status = installed.run("git status --porcelain --untracked-files=all", tmp_path, HOME=os.fspath(tmp_path)).stdout
    assert "data/model_versions.yaml" in status
    assert ".eval" not in status
    assert "evals.xml" not in status
