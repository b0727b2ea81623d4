"""What tests of the whole pipeline begin with."""

from pathlib import Path

import pytest

from eval_pipeline_tests.support import Lab


@pytest.fixture
def lab_folder(same_folder: Path) -> Path:
    return same_folder


@pytest.fixture
def published(small: Lab, module_folder: Path) -> Lab:
    """`small`, evaluated and published; made once a module."""
    return small.made_once(module_folder / "published", lambda lab: lab.evaluate(publish=True))
