"""Installing packages for a test, as an installer leaves them: modules beside a folder of metadata.

As a program it installs the example into a new folder and says where that is.
"""

import shutil
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

from eval_pipeline.core.installed import plugins
from eval_pipeline_tests import forked
from eval_pipeline_tests.support import WIDE, Lab, Said

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"

CONSTANT = {
    "name": "c",
    "provider": "constant",
    "options": {"answer": '{"plan": [{"tool": "extract", "value": 3, "source": "text"}]}'},
}
"""A model version of the example's provider."""


def child(lab: Lab, site: Path, *arguments: str) -> Said:
    """`eval-pipeline` in a process of its own, which sees the packages in a folder."""
    environment = lab.environment | {"PYTHONPATH": str(site), "COLUMNS": str(WIDE)}
    done = forked.completed(f"{__name__}:command", arguments, environment)
    return Said(done.returncode, done.stdout, done.stderr)


def command() -> None:
    """`eval-pipeline` where nothing is known of packages yet."""
    forget()
    forked.command()


def forget() -> None:
    """Lets this process look through the installed packages again."""
    for known in (plugins.installed, plugins._loaded, plugins._warn):
        known.cache_clear()


def example_suite(lab: Lab, name: str) -> Path:
    """Puts a suite of the example among those of a home."""
    return Path(shutil.copytree(EXAMPLE / name, lab.home.data / "suites" / name))


def install_example(place: Path) -> Path:
    """The package in `examples/plugin`."""
    told = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    place.mkdir(parents=True, exist_ok=True)
    shutil.copytree(EXAMPLE / "eval_pipeline_example", place / "eval_pipeline_example")
    return write_metadata(place, told["name"], told["version"], told["entry-points"])


def install(place: Path, name: str, code: str, points: Mapping[str, Mapping[str, str]], version: str = "1.0") -> Path:
    """A package of one module of the same name, with entry points by group."""
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}.py").write_text(code)
    return write_metadata(place, name, version, {f"eval_pipeline.{group}": found for group, found in points.items()})


def write_metadata(place: Path, name: str, version: str, points: Mapping[str, Mapping[str, str]]) -> Path:
    folder = place / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    sections = [
        "\n".join([f"[{group}]", *(f"{key} = {value}" for key, value in found.items())])
        for group, found in points.items()
    ]
    (folder / "entry_points.txt").write_text("\n\n".join(sections) + "\n")
    return place


if __name__ == "__main__":
    sys.stdout.write(f"{install_example(Path(tempfile.mkdtemp(prefix='eval-pipeline-example-')))}\n")
