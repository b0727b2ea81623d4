"""Homes with evaluations, which the tests of a module begin with a copy of."""

from pathlib import Path

import pytest


@pytest.fixture
def lab_folder(same_folder: Path) -> Path:
    return same_folder
