"""The wheel of this project, installed into environments of their own."""

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
WORKFLOW = Path(".github", "workflows", "evals.yml")
_OURS = ("EVAL_", "GITHUB_", "PYTHON", "DAGSTER_")


@dataclass(frozen=True)
class Installed:
    """An environment that the wheel is installed in."""

    folder: Path

    def run(
        self, command: str, place: Path, *, timeout: float = 300, **more: str
    ) -> "subprocess.CompletedProcess[str]":
        """A command of a shell in a folder, without any setting of this project but those given."""
        settings = self.settings(**more)
        return subprocess.run(
            ["sh", "-c", command], cwd=place, env=settings, capture_output=True, text=True, timeout=timeout, check=False
        )

    def settings(self, **more: str) -> dict[str, str]:
        """What the environment sets once it is activated, and nothing of this project but those given."""
        rest = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        path = f"{self.folder / 'bin'}:{Path(_uv()).parent}:{os.environ['PATH']}"
        return rest | {"PATH": path, "VIRTUAL_ENV": str(self.folder), "COLUMNS": "300"} | more


def uv(*arguments: str) -> None:
    subprocess.run([_uv(), *arguments], check=True)


def _uv() -> str:
    return shutil.which("uv") or str(Path(sys.executable).with_name("uv"))


def build(folder: Path) -> Path:
    """Builds the wheel into a folder."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def beside(wheel: Path, folder: Path) -> Installed:
    """The wheel in an environment of its own that finds all other packages where this process does: seconds quicker."""
    uv("venv", "--quiet", "--python", sys.executable, str(folder))
    made = Installed(folder)
    uv("pip", "install", "--quiet", "--no-deps", "--python", str(folder / "bin" / "python"), str(wheel))
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")  # `.pth` files in there are not followed
    return made


def clean(wheel: str, folder: Path, python: str) -> Installed:
    """The wheel, perhaps with extras, and what it requires, and nothing else, in an environment of its own."""
    uv("venv", "--quiet", "--python", python, str(folder))
    uv("pip", "install", "--quiet", "--python", str(folder / "bin" / "python"), wheel)
    return Installed(folder)


def tool(folder: Path, python: str) -> Installed:
    """What `uv tool install` makes of the repository as it is in the working tree."""
    repository = folder / "repository"
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(lambda name: (ROOT / name).is_file(), filter(None, names.split("\0"))):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, repository / name)
    who = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    for arguments in (("init", "-q"), ("add", "-A"), (*who, "commit", "-qm", "As it is")):
        subprocess.run(["git", *arguments], cwd=repository, check=True)
    settings = os.environ | {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    command = [_uv(), "tool", "install", "--quiet", "--python", python, f"eval-pipeline @ git+{repository.as_uri()}"]
    subprocess.run(command, env=settings, check=True)
    return Installed(folder / "tools" / "eval-pipeline")


def interpreter(version: str) -> str | None:
    """An interpreter of that version on this machine, if there is one; nothing is downloaded."""
    arguments = ("python", "find", "--no-python-downloads", version)
    found = subprocess.run([_uv(), *arguments], capture_output=True, text=True, check=False).stdout.strip()
    of_pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv").glob(f"versions/{version}.*/bin/python")
    return found or next((str(path) for path in sorted(of_pyenv)), None)


def workflow_steps(project: Path) -> tuple[dict[str, str], list[str]]:
    """The settings of a project's workflow, and what its steps run, but for the comment on a pull request."""
    told = yaml.safe_load((project / WORKFLOW).read_text())
    steps = [step["run"] for step in told["jobs"]["evals"]["steps"] if "run" in step]
    return told["env"], [step for step in steps if not step.startswith("gh ")]
