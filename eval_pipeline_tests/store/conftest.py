import os
import shutil
from pathlib import Path

import pytest

from eval_pipeline.store.catalog import sweeping
from eval_pipeline.store.published.publish import publish
from eval_pipeline.store.record import Record
from eval_pipeline_tests.store.catalogs import Full, State, state
from eval_pipeline_tests.store.samples import TRACKS, contents, filled


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fsync protects from, a power failure, no test can cause; `test_store_durable` sees that it is called."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is a catalog, and what it replaces need not be kept for those who are about to open it."""
    monkeypatch.setenv("EVAL_STORE", "catalog")
    monkeypatch.setattr(sweeping, "_OPENING_S", 0.0)


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path / "record")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "eval.duckdb"


@pytest.fixture(scope="session")
def filled_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("filled")
    filled(Record(home / "record"))
    publish(Record(home / "record"), home / "eval.duckdb", TRACKS)
    return home


@pytest.fixture
def recorded(filled_home: Path, tmp_path: Path) -> None:
    """`record` is filled."""
    shutil.copytree(filled_home / "record", tmp_path / "record")


@pytest.fixture
def published(filled_home: Path, tmp_path: Path) -> None:
    """`record` and `out` are filled and published; copied, as making them takes longer than most tests."""
    shutil.copytree(filled_home, tmp_path, dirs_exist_ok=True)


@pytest.fixture(scope="session")
def good(filled_home: Path) -> State:
    """What a store has that is `published`."""
    return contents(filled_home / "eval.duckdb")


@pytest.fixture(scope="session")
def full_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog that tests change, and a copy of it as it was, in `kept` beside it."""
    home = tmp_path_factory.mktemp("full") / "home"
    filled(Record(home / "record"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVAL_STORE", "catalog")
        publish(Record(home / "record"), home / "eval.duckdb", TRACKS)
    shutil.copytree(home, home.with_name("kept"))
    return home


@pytest.fixture(scope="session")
def before(full_home: Path) -> State:
    """What `full` has. (Asked for first, so that no test has changed it.)"""
    return state(full_home / "eval.duckdb")


@pytest.fixture
def full(full_home: Path, before: State) -> Full:
    """A published catalog and its record, at the same place for all tests, as its views name their files."""
    shutil.rmtree(full_home)
    shutil.copytree(full_home.with_name("kept"), full_home)
    return Record(full_home / "record"), full_home / "eval.duckdb"
