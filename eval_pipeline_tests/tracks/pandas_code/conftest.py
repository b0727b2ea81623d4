"""Fixtures of the tests of the track."""

import pytest

from eval_pipeline.core.errors import EvalError
from eval_pipeline.tracks.pandas_code.runner import sandbox


@pytest.fixture(scope="session")
def working_sandbox() -> None:
    """Skips where nothing on this machine can hold code, with the reason."""
    try:
        sandbox()
    except EvalError as error:
        pytest.skip(str(error))
