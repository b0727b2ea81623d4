import datetime as dt
import os
from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.store.keys import RecordKey, key_from_folders
from eval_pipeline.store.record import Record
from eval_pipeline.store.tables import (
    METRICS,
    MODEL_VERSIONS,
    PROMPTS,
    SUITES,
)
from eval_pipeline_tests.store.samples import key_of, put

names = st.text(st.characters(codec="utf-8"), max_size=300)


@given(suite=names, model=names, day=st.dates())
def test_any_name_is_one_folder_and_comes_back(suite: str, model: str, day: dt.date) -> None:
    key = RecordKey(suite, model, day)
    folders = key.folders(METRICS)
    assert len(folders) == 3
    for folder in folders:
        assert folder.isascii()
        assert len(folder) <= 255
        assert folder not in {".", ".."}
        assert not set(folder) & set('/\\\0:*?"<>| []')
    again = key_from_folders(folders)
    assert again == key or (again is None and "~" in "".join(folders))


@given(one=names, other=names)
def test_different_names_have_different_folders(one: str, other: str) -> None:
    same = RecordKey.of_suite(one).folders(SUITES) == RecordKey.of_suite(other).folders(SUITES)
    assert same == (one == other)


@pytest.mark.parametrize("name", ["..", ".", "a/../b", "ü" * 200, "~", "model=x", "", "gpt-4o@2026 #1"])
def test_odd_names_are_listed_and_removed(record: Record, name: str) -> None:
    key = key_of(name, suite=name)
    put(record, METRICS, key)
    put(record, METRICS, key_of())
    assert record.path(METRICS, key).resolve().is_relative_to(record.root.resolve())
    assert set(record.partitions(METRICS)) == {key, key_of()}
    assert record.read(METRICS, key, ["suite"]).to_pydict() == {"suite": [name]}
    assert record.remove(METRICS, key)
    assert not record.remove(METRICS, key)
    assert record.partitions(METRICS) == [key_of()]
    assert len(list((record.root / "metrics").iterdir())) == 1


def test_keys_and_tables_must_fit(record: Record) -> None:
    for table, key in [(METRICS, RecordKey.of_suite("a")), (SUITES, key_of()), (MODEL_VERSIONS, RecordKey())]:
        with pytest.raises(ValueError, match="has a file for each"):
            record.path(table, key)
    with pytest.raises(ValueError, match="prompts has a file for each source"):
        record.path(PROMPTS, key_of())


def test_partitions_are_sorted_and_foreign_files_ignored(record: Record) -> None:
    assert record.partitions(METRICS) == []
    keys = [key_of("b"), key_of("a", dt.date(2026, 1, 6)), key_of("a"), key_of("a", suite="zz")]
    for key in keys:
        put(record, METRICS, key)
    (record.root / "metrics" / "notes.txt").write_text("mine")
    (record.root / "metrics" / "suite=x" / "a" / "b").mkdir(parents=True)
    (record.root / "metrics" / "suite=x" / "a" / "b" / "part.parquet").write_text("mine")
    assert record.partitions(METRICS) == [keys[2], keys[1], keys[0], keys[3]]


@pytest.mark.parametrize("name", ["a", "..", "ü" * 200, "gpt-4o@2026 #1"])
@pytest.mark.parametrize("parts", list(product([False, True], repeat=3)))
def test_partitions_within_a_key_are_those_with_its_parts(
    record: Record, name: str, parts: tuple[bool, bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    days = dt.date(2026, 1, 5), dt.date(2026, 1, 6)
    keys = [key_of(model, day, suite) for model, day, suite in product((name, "other"), days, (name, "another"))]
    for key in keys:
        put(record, METRICS, key)
    within = RecordKey(*(value if given else None for value, given in zip((name, name, days[0]), parts, strict=True)))
    expected = [
        key
        for key in keys
        if within.suite in (None, key.suite)
        and within.model_version in (None, key.model_version)
        and within.eval_date in (None, key.eval_date)
    ]
    walked: list[str] = []
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: walked.append(str(folder)) or listdir(folder))
    assert record.partitions(METRICS, within) == sorted(expected, key=RecordKey.order)
    # Given parts are not looked for: one listing for each open part of the folders above it.
    folders = [1 if given else 2 for given in parts]
    assert len(walked) == sum(prod(folders[:depth]) for depth, given in enumerate(parts) if not given)
