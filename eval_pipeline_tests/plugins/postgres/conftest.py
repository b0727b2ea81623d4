"""Tests of state in a database: each begins with a database that has nothing in it."""

from collections.abc import Iterator

import pytest

from eval_pipeline.state.place import DATABASE_URL
from eval_pipeline_plugins.postgres import leases
from eval_pipeline_tests.servers import StatePostgres


@pytest.fixture(scope="module")
def like() -> str:
    """The database that those of tests are copies of."""
    return "template0"


@pytest.fixture
def database_url(state_server: StatePostgres, like: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a database, which is also that of the environment."""
    url = state_server.new_database(like)
    monkeypatch.setenv(DATABASE_URL, url)
    yield url
    for opened in leases._opened.values():
        opened.close()
    leases._opened.clear()
