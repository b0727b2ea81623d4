"""A folder of the package has as many entries as a reader takes in at once."""

from pathlib import Path

import pytest

PACKAGES = Path(__file__).parents[2]
MOST = 15
MORE = {
    "eval_pipeline": "its folders are the floors, which docs/architecture.md lists",
    "eval_pipeline/sandbox/inside": "all that runs beside model code, in one place to be looked through",
}


def entries(folder: Path) -> int:
    return sum(
        not one.name.startswith((".", "__pycache__")) and (one.is_file() or any(one.rglob("*.py")))
        for one in folder.iterdir()
    )


@pytest.mark.parametrize("package", ["eval_pipeline", "eval_pipeline_plugins"])
def test_rooms_are_small(package: str) -> None:
    folders = [path for path in (PACKAGES / package).rglob("*") if path.is_dir() and path.name != "__pycache__"]
    found = {str(path.relative_to(PACKAGES)): entries(path) for path in [PACKAGES / package, *folders]}
    assert {name: count for name, count in found.items() if count > MOST and name not in MORE} == {}
    assert [name for name in MORE if name.startswith(f"{package}/") and found.get(name, 0) <= MOST] == []
