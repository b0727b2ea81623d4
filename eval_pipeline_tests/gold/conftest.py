"""Homes with evaluations, which the tests of a module begin with a copy of."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def lab_folder(module_folder: Path) -> Path:
    """The same for all tests of a module, and empty."""
    shutil.rmtree(module_folder / "lab", ignore_errors=True)
    (module_folder / "lab").mkdir()
    return module_folder / "lab"
