"""Homes with evaluations, which the tests of a module begin with a copy of."""

from pathlib import Path

import pytest

from eval_pipeline_tests.support import Lab


@pytest.fixture
def lab_folder(same_folder: Path) -> Path:
    return same_folder


@pytest.fixture
def home(lab: Lab) -> Lab:
    """One with the suite `small` and no model version: answers are imported into it."""
    lab.suite()
    lab.versions()
    return lab
