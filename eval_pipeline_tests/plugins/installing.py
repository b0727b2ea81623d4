"""Installing packages for a test, as an installer leaves them: modules beside a folder of metadata."""

import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"


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
