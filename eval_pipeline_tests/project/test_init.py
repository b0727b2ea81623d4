"""`init` makes a project whose files can be read, and changes none that is there; commands say that one is missing."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_pipeline import __version__
from eval_pipeline.core.home import find_home
from eval_pipeline.core.installed import installation
from eval_pipeline.core.installed.installation import requirement
from eval_pipeline.operations.project import SAMPLE, TEMPLATES, sample_suites, samples
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import find_suites
from eval_pipeline.workspace.workspace import Workspace
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.support import Lab, command

MOST_FILES = 8
"""As many as a newcomer looks at."""


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder outside any project, as the working folder."""
    for name in ("EVAL_HOME", "EVAL_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_new_project_is_found_and_can_be_read(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = command("init", "my-evals")
    project = nowhere / "my-evals"
    assert said.code == 0
    assert f"{len(files(project))} files written, 0 left as they were" in said.out
    assert len(files(project)) < MOST_FILES  # a wheel is one more
    assert all((project / target).is_file() for target in TEMPLATES.values())
    monkeypatch.chdir(project / "data" / "suites")
    home = find_home()
    assert (home.root, home.data) == (project / ".eval", project / "data")
    workspace = Workspace(home)
    assert list(workspace.suites) == [SAMPLE]
    assert not read_suite(workspace.suites[SAMPLE]).problems
    assert {"simulated-strong", "simulated-weak", "oracle", "null"} <= set(workspace.model_versions)


def test_every_sample_can_be_chosen(nowhere: Path) -> None:
    names = sample_suites()
    assert SAMPLE in names
    assert command("init", "all", *(word for name in names for word in ("--sample", name))).code == 0
    assert sorted(find_suites([nowhere / "all" / "data" / "suites"])) == names
    for name in names:
        shipped = {path: data for path, data in files(samples() / "suites" / name).items() if "reviews/" not in path}
        assert files(nowhere / "all" / "data" / "suites" / name) == shipped


def test_an_unknown_sample_is_refused_before_anything_is_written(nowhere: Path) -> None:
    said = command("init", "my-evals", "--sample", SAMPLE, "--sample", "nope")
    assert said.code == 2
    assert "unknown sample suite 'nope'; known: agents_sample, finqa_sample" in said.err
    assert not (nowhere / "my-evals").exists()


def test_no_file_that_is_there_is_changed(nowhere: Path) -> None:
    project = nowhere / "my-evals"
    (project / "data").mkdir(parents=True)
    own = {"README.md": b"mine", "data/model_versions.yaml": b"model_versions: []", "other.txt": b"stays"}
    for name, content in own.items():
        (project / name).write_bytes(content)
    (project / "requirements.txt").symlink_to(nowhere / "is-not-there")
    said = command("init", "my-evals")
    assert said.code == 0
    assert {name: (project / name).read_bytes() for name in own} == own
    assert not (nowhere / "is-not-there").exists()
    assert "README.md is there already and was not changed" in said.err
    assert ", 3 left as they were" in said.out
    before = files(project)
    assert "0 files written" in command("init", "my-evals").out
    assert files(project) == before


@pytest.mark.parametrize("blocked", ["my-evals", "my-evals/data", "my-evals/.github"])
def test_a_file_where_a_folder_is_needed_is_one_sentence(nowhere: Path, blocked: str) -> None:
    (nowhere / blocked).parent.mkdir(exist_ok=True)
    (nowhere / blocked).write_text("a file")
    said = command("init", "my-evals")
    assert said.code == 2
    assert re.fullmatch(r"error: .*my-evals.*: cannot be written: .*\n", said.err)
    assert (nowhere / blocked).read_text() == "a file"


def test_nothing_of_the_templates_is_left_to_fill_in(nowhere: Path) -> None:
    command("init", "my-evals", "--sample", "sql_sample")
    made = {name: (nowhere / "my-evals" / target).read_text() for name, target in TEMPLATES.items()}
    assert not [text for text in made.values() if re.search(r"@[A-Z]+@", text)]
    assert yaml.safe_load(made["evals.yml"])["env"]["SUITE"] == "sql_sample"
    assert requirement().line in made["requirements.txt"].splitlines()


def test_a_project_brings_the_wheel_that_it_requires(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = nowhere / "eval_pipeline-9-py3-none-any.whl"
    told = {"url": wheel.as_uri(), "archive_info": {}}
    monkeypatch.setattr(installation, "_direct_url", lambda: told)
    assert f"the wheel is no longer in {nowhere}" in command("init", "without").err
    wheel.write_bytes(b"a wheel")
    said = command("init", "my-evals")
    assert (said.code, said.err) == (0, "")
    assert files(nowhere / "my-evals")[f"wheels/{wheel.name}"] == b"a wheel"
    assert f"./wheels/{wheel.name}" in (nowhere / "my-evals" / "requirements.txt").read_text().splitlines()
    assert len(files(nowhere / "my-evals")) == MOST_FILES


@pytest.mark.parametrize("case", golden("requirements.yaml"), ids=lambda case: case["name"])
def test_what_was_installed_can_be_installed_again(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "_direct_url", lambda: case["told"])
    monkeypatch.setattr(installation, "_git", lambda folder, *arguments: case.get("git", {}).get(arguments[0], ""))
    found, line = requirement(), case["line"].replace("VERSION", __version__)
    assert (found.line, found.only_here) == (line, case.get("only_here", False))
    assert found.line_with(()) == line
    if "with_extras" in case:
        assert found.line_with({"sdmx", "pandas"}) == case["with_extras"].replace("VERSION", __version__)


def test_a_project_requires_the_extras_of_its_tracks(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lxml", None)
    said = command("init", "my-evals", "--sample", "sdmx_sample", "--sample", "sql_sample")
    assert said.code == 0
    assert "the track sdmx needs lxml; install with " in said.err
    lines = (nowhere / "my-evals" / "requirements.txt").read_text().splitlines()
    assert requirement().line_with(["sdmx"]) in lines


def test_a_project_is_known_by_its_model_versions_and_settings_come_first(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = nowhere / "outer" / "inner"
    for folder in (nowhere / "outer", inner):
        (folder / "data").mkdir(parents=True)
    (nowhere / "outer" / "data" / "model_versions.yaml").touch()
    monkeypatch.chdir(inner)
    assert find_home().data == nowhere / "outer" / "data"
    (inner / "data" / "model_versions.yaml").touch()
    assert find_home().data == inner / "data"
    monkeypatch.setenv("EVAL_DATA", str(nowhere / "elsewhere"))
    assert (find_home().data, find_home().root) == (nowhere / "elsewhere", inner / ".eval")


@pytest.mark.parametrize(
    "arguments",
    [["demo"], ["run"], ["run", "--suite", "small"], ["plan"], ["validate"], ["compare", "a", "b"], ["report"]],
    ids=" ".join,
)
def test_commands_without_a_suite_say_where_they_looked(lab: Lab, arguments: list[str]) -> None:
    said = lab.cli(*arguments)
    assert said.code == 2
    assert f"there is no suite in {lab.home.data / 'suites'}" in said.err
    assert "`eval-pipeline init FOLDER` makes a project" in said.err


def test_run_without_an_active_model_version_names_the_files(lab: Lab) -> None:
    lab.suite()
    said = lab.cli("run")
    assert said.code == 2
    assert f"no active model version in {lab.home.data / 'model_versions.yaml'} or {lab.home.root}" in said.err


def test_doctor_names_the_paths_that_it_looked_at(lab: Lab) -> None:
    said = lab.cli("doctor")
    assert said.code == 1
    assert f"FAIL suites: none in {lab.home.data / 'suites'} or {lab.home.root / 'suites'}" in said.out
    assert f"FAIL model versions: none in {lab.home.data / 'model_versions.yaml'} or" in said.out


@pytest.mark.always
def test_demo_without_its_model_versions_names_those_there_are(lab: Lab) -> None:
    lab.suite()
    lab.versions({"name": "mine", "provider": "oracle"})
    said = lab.cli("demo")
    assert said.code == 1
    assert "unknown model version 'simulated-strong'; known: mine" in said.err
    assert f"smollm2-135m is left out: it is not in {lab.home.data / 'model_versions.yaml'}" in said.err
