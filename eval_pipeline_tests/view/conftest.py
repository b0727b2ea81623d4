"""The workbench on a home that is made once for all tests."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from eval_pipeline.core.home import Home
from eval_pipeline.view.page import Bench
from eval_pipeline.view.published import StoreView
from eval_pipeline_tests.support import built_once
from eval_pipeline_tests.view.homes import build, home_in
from eval_pipeline_tests.view.pages import let_in


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return home_in(built_once(tmp_path_factory, "view", build))


@pytest.fixture(scope="session")
def bench(home: Home) -> Iterator[Bench]:
    with Bench.of(home) as found:
        yield found


@pytest.fixture
def look(bench: Bench) -> Iterator[StoreView]:
    with bench.published.look() as found:
        yield found


@pytest.fixture(scope="session")
def client(bench: Bench) -> TestClient:
    """One who is let in."""
    return let_in(bench)
