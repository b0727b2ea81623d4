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
        rest = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        settings = rest | {"PATH": path, "COLUMNS": "300"} | more
        return subprocess.run(
            ["sh", "-c", command], cwd=place, env=settings, capture_output=True, text=True, timeout=timeout, check=False
        )


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


def clean(wheel: Path, folder: Path, python: str) -> Installed:
    """The wheel and everything that it requires, and nothing else, in an environment of its own."""
    uv("venv", "--quiet", "--python", python, str(folder))
    uv("pip", "install", "--quiet", "--python", str(folder / "bin" / "python"), str(wheel))
    return Installed(folder)


def interpreter(version: str) -> str | None:
    """An interpreter of that version on this machine, if there is one; nothing is downloaded."""
    arguments = ("python", "find", "--no-python-downloads", version)
    found = subprocess.run([_uv(), *arguments], capture_output=True, text=True, check=False).stdout.strip()
    of_pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv").glob(f"versions/{version}.*/bin/python")
    return found or next((str(path) for path in sorted(of_pyenv)), None)


def workflow_commands(project: Path) -> tuple[dict[str, str], list[str]]:
    """The settings of a project's workflow, and its commands that call the tool, as they are written."""
    told = yaml.safe_load((project / WORKFLOW).read_text())
    steps = told["jobs"]["evals"]["steps"]
    commands = [step["run"] for step in steps if step.get("run", "").startswith("eval-pipeline ")]
    return told["env"], commands
