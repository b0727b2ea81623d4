"""Files that somebody else keeps where a catalog has its parts are left alone."""

from pathlib import Path

import pytest

from eval_pipeline.store.catalog import sweeping
from eval_pipeline.store.publish import publish
from eval_pipeline.store.record import Record
from eval_pipeline_tests.store.samples import TRACKS, put_model, put_suite


def test_a_store_of_one_file_touches_no_folder_of_that_name(record: Record, out: Path) -> None:
    own = [out.parent / "catalog" / "parts" / "mine" / f"{name}.parquet" for name in ("sales", "0123456789abcdef" * 2)]
    own[0].parent.mkdir(parents=True)
    for path in own:
        path.write_bytes(b"mine")
    for model in ("alpha", "beta"):
        put_model(record, model)
        assert publish(record, out, TRACKS).tables
    assert [path.read_bytes() for path in own] == [b"mine"] * 2


def test_a_catalog_removes_only_what_is_named_as_a_part(
    record: Record, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "_OPENING_S", 0.0)
    monkeypatch.setenv("EVAL_STORE", "catalog")
    put_suite(record)
    put_model(record)
    publish(record, out, TRACKS)
    own = out.parent / "catalog" / "parts" / "model_versions" / "of_mine.parquet"
    own.write_bytes(b"mine")
    put_model(record, "beta")
    assert publish(record, out, TRACKS).tables
    monkeypatch.setenv("EVAL_STORE", "file")
    put_model(record, "gamma")
    assert publish(record, out, TRACKS).full
    assert own.read_bytes() == b"mine"
    assert [path for path in (out.parent / "catalog").rglob("*") if path.is_file()] == [own]
