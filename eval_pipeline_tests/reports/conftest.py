"""Evaluations made once for all tests of the reports."""

from pathlib import Path

import pytest
from evaluations import Made, evaluate, make_home

from eval_pipeline_tests.chains import ran
from eval_pipeline_tests.pictures import sketches


@pytest.fixture(scope="session")
def weak(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A simulated model that fails on some turns."""
    return evaluate(make_home(tmp_path_factory.mktemp("weak")), "weak")


@pytest.fixture(scope="session")
def folder(weak: Made) -> Path:
    """Its report, with the pictures of its charts."""
    with sketches(on=False):
        found: Path = ran(weak.workspace, weak.partition, "report").facts["folder"]
    return found
