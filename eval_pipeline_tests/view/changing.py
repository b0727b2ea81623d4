"""A store that a test changes by SQL, and the workbench on it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
from starlette.testclient import TestClient

from eval_pipeline.core.home import Home
from eval_pipeline.view.app import application
from eval_pipeline.view.page import Bench
from eval_pipeline.web.guard import Door


@contextmanager
def changed(home: Home, folder: Path, *statements: str) -> Iterator[TestClient]:
    """One who is let in to a copy of the store that these statements have changed."""
    with duckdb.connect(shutil.copy(home.store, folder / "eval.duckdb")) as connection:
        for statement in statements:
            connection.execute(statement)
    with Bench.of(Home(folder, home.data)) as bench:
        yield TestClient(application(bench, Door(1, None)), base_url="http://127.0.0.1:1")
