"""The provider `command`: what may be named, what the jail gets of it, and what decides its attempts."""

import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Environment, FatalCallError
from eval_pipeline.providers.command import CommandProvider
from eval_pipeline.providers.registry import check_settings
from eval_pipeline.providers.validation import SettingsError
from eval_pipeline.sandbox.world.programs import arguments_of, environment_of
from eval_pipeline_tests.fakes.scripted import make_call


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder in ("agents/ours/lib/__pycache__", "agents/venv/bin", "data/suites/books", ".eval", "tools"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "agents" / "ours" / "agent.py").write_text("print(1)\n")
    (tmp_path / "agents" / "ours" / "lib" / "inner.py").write_text("")
    (tmp_path / "agents" / "venv" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "data" / "suites" / "books" / "gold.yaml").write_text("gold")
    (tmp_path / "into").symlink_to(tmp_path / "data" / "suites")
    return tmp_path


def version(**options: Any) -> ModelVersion:
    fields = {name: options.pop(name) for name in ("sampling", "batch", "predictions") if name in options}
    told = {"command": ["python", "agent.py"], **options}
    return ModelVersion.model_validate({"name": "v", "provider": "command", "options": told, **fields})


def provider(project: Path, **options: Any) -> CommandProvider:
    private = (str(project / ".eval"), str(project / "data" / "suites"))
    return CommandProvider(version(**options), Environment(project=str(project), private=private))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"command": []}, "options.command: expected at least 1"),
        ({"command": "python agent.py"}, "options.command: expected a list"),
        ({"command": ["python", ""]}, "options.command.1: "),
        ({"folders": "x"}, "options.folders: unknown field; allowed: command, folder, upstream, env, venv, mounts"),
        ({"upstream": {"mistral": "https://a.b"}}, "options.upstream.mistral"),
        ({"upstream": {"openai": "a.b"}}, "options.upstream.openai: expected an address such as https://host/v1"),
        ({"upstream": {}}, "options.upstream: "),
        ({"env": {"A B": "x"}}, "expected the name of an environment variable"),
        ({"env": {"A": 1}}, "options.env.A: expected a text"),
        ({"batch": True}, "batch: means nothing to the provider 'command'; leave it out"),
        ({"sampling": {"temperature": 1}}, "sampling: means nothing to the provider 'command'; leave it out"),
    ],
)
def test_wrong_settings_are_told_in_a_sentence(options: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError) as raised:
        check_settings(version(**options))
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"folder": "agents/theirs"}, "options.folder: there is no folder "),
        ({"folder": "agents/ours/agent.py"}, "options.folder: there is no folder "),
        ({"mounts": ["tools", "hammer"]}, "options.mounts: there is no file or folder "),
        ({"venv": "agents/ours"}, "it has no bin/python"),
        ({"folder": "."}, "where gold answers or the home are"),
        ({"folder": "data/suites/books"}, "where gold answers or the home are"),
        ({"mounts": ["into"]}, "where gold answers or the home are"),
        ({"mounts": [".eval"]}, "where gold answers or the home are"),
        ({"venv": "/"}, "where gold answers or the home are"),
    ],
)
def test_a_folder_that_cannot_be_shown_is_told_in_a_sentence(project: Path, options: Any, told: str) -> None:
    found = provider(project, **options)
    with pytest.raises(SettingsError) as raised:
        _ = found.program
    assert told in str(raised.value)


def test_what_is_shown_has_no_sockets(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sees one can reach what listens there, whatever network they have."""
    monkeypatch.chdir(project)
    for place in ("agents/ours/lib/s", "tools/s", "agents/venv/s"):
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(place)
    for options in ({"folder": "agents/ours"}, {"mounts": ["tools"]}, {"mounts": ["tools/s"]}, {"venv": "agents/venv"}):
        with pytest.raises(SettingsError, match=r"/s is a socket, by which a program would reach what listens there"):
            assert provider(project, **options).program
    assert provider(project, mounts=["agents/ours/agent.py"]).program


def test_what_cannot_be_listed_is_not_shown(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may reach a socket in a folder that it may not list."""
    listed = os.scandir

    def scandir(place: str) -> Any:
        if place.endswith("/secret"):
            raise PermissionError(13, "Permission denied", place)
        return listed(place)

    (project / "tools" / "secret").mkdir()
    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(SettingsError, match=r"mounts: .*/secret cannot be listed, .*: Permission denied"):
        assert provider(project, mounts=["tools"]).program


def test_the_jail_gets_what_is_named_and_no_more(project: Path) -> None:
    found = provider(project, folder="agents/ours", mounts=["tools"], env={"KIND": "x"}).program
    assert found.folder == project / "agents" / "ours" and found.shown == (project / "tools",)
    assert arguments_of(found, "all") == ["python", "/agent/agent.py"]
    told = environment_of(found)
    assert told["PATH"].startswith("/agent:/box/bin:") and (told["KIND"], told["PYTHONPATH"]) == ("x", "/agent")
    with_venv = provider(project, venv="agents/venv", command=["python", "-m", "ours", "--task={task}"]).program
    assert with_venv.own_packages and with_venv.shown[0] == project / "agents" / "venv"
    base = Path(sys.executable).resolve().parents[1]
    assert base in with_venv.shown or str(base).startswith("/usr")
    assert arguments_of(with_venv, "a b") == ["python", "-m", "ours", "--task=a b"]
    told = environment_of(with_venv)
    assert told["PATH"].startswith(f"{project}/agents/venv/bin:/box/bin:") and told["PYTHONPATH"] == ""


def test_what_the_program_consists_of_decides_its_attempts(project: Path) -> None:
    def told(**options: Any) -> str:
        return str(provider(project, folder="agents/ours", **options).request(make_call()))

    before = told()
    (project / "agents" / "ours" / "lib" / "__pycache__" / "inner.pyc").write_text("x")
    assert told() == before
    assert len({before, told(env={"A": "b"}), told(command=["python", "agent.py", "-x"]), told(mounts=["tools"])}) == 4
    (project / "agents" / "ours" / "lib" / "inner.py").write_text("changed")
    assert told() != before
    gone = Environment(project=str(project / "elsewhere"))
    assert CommandProvider.own_files(version(folder="agents/ours"), gone) == ""


def test_it_is_run_and_not_asked(project: Path) -> None:
    with pytest.raises(FatalCallError, match="'v' is a program"):
        provider(project).generate(make_call()).send(None)
