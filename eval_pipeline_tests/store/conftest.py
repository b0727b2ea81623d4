import os
import shutil
from pathlib import Path

import pytest

from eval_pipeline.store.catalog import sweeping
from eval_pipeline.store.publish import publish
from eval_pipeline.store.record import Record
from eval_pipeline_tests.store.samples import TRACKS, filled


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
def published(filled_home: Path, tmp_path: Path) -> None:
    """`record` and `out` are filled and published; copied, as making them takes longer than most tests."""
    shutil.copytree(filled_home, tmp_path, dirs_exist_ok=True)
