import os
from pathlib import Path

import pytest

from eval_pipeline.store.record import Record


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fsync protects from, a power failure, no test can cause; `test_store_durable` sees that it is called."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path / "record")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "eval.duckdb"
