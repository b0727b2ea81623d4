"""Fixtures of the tests of the track."""

from collections.abc import Iterator

import pytest

from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model import Case
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import read_header
from eval_pipeline_plugins.tracks.pandas_code.cases.source import PandasShared
from eval_pipeline_plugins.tracks.pandas_code.running.runner import sandbox
from eval_pipeline_tests.support import SHIPPED, Lab, built_once, surroundings
from eval_pipeline_tests.tracks.pandas_code.helpers import shared


@pytest.fixture(scope="session")
def working_sandbox() -> None:
    """Skips where nothing on this machine can hold code, with the reason."""
    try:
        sandbox()
    except EvalError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="package", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Where expected results and variants are kept, for all tests of the track."""
    lab = Lab.at(built_once(tmp_path_factory, "pandas", lambda folder: None))
    with surroundings(lab):
        yield lab


@pytest.fixture(scope="package")
def stall(home: Lab, working_sandbox: None, tmp_path_factory: pytest.TempPathFactory) -> PandasShared:
    """The tables of the stall."""
    return shared(tmp_path_factory.mktemp("stall"))


@pytest.fixture(scope="package")
def sample(home: Lab, working_sandbox: None) -> dict[str, Case]:
    """The cases of the shipped suite."""
    return {case.id: case for case in read_suite(read_header(SHIPPED / "suites" / "pandas_sample")).cases}
