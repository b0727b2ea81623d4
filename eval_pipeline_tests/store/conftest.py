from pathlib import Path

import pytest

from eval_pipeline.store.record import Record


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path / "record")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "eval.duckdb"
