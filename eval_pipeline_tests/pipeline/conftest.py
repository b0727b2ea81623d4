"""What tests of the whole pipeline begin with."""

from pathlib import Path

import pytest

from eval_pipeline_tests.support import Lab, Puppet


@pytest.fixture
def lab_folder(same_folder: Path) -> Path:
    return same_folder


@pytest.fixture
def evaluated(small: Lab, module_folder: Path) -> Lab:
    """`small`, evaluated; made once a module, and as if somebody else had asked the puppet."""
    small.made_once(module_folder / "evaluated", lambda lab: lab.evaluate())
    Puppet.reset()
    return small


@pytest.fixture
def published(small: Lab, module_folder: Path) -> Lab:
    """`small`, evaluated and published; likewise."""
    small.made_once(module_folder / "published", lambda lab: lab.evaluate(publish=True))
    Puppet.reset()
    return small
