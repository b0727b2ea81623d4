import datetime as dt
import gc
import traceback
from dataclasses import replace

import pytest

from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.record import Record
from eval_pipeline.store.schemas import Column
from eval_pipeline.store.tables import (
    EVIDENCE,
    GENERATION_PROMPTS,
    METRICS,
    RUNS,
    arrow_schema,
)
from eval_pipeline_tests.store.samples import RECORD_TABLES, key_of, put, rows


def some_key(table: object) -> RecordKey:
    kinds = {"suite": RecordKey.of_suite("finqa"), "model_version": RecordKey.of_model_version("alpha")}
    return kinds.get(getattr(table, "key", ""), key_of())


@pytest.mark.parametrize("table", RECORD_TABLES, ids=lambda table: table.name)
def test_what_is_written_is_read(record: Record, table) -> None:
    key = some_key(table)
    with record.writer(table, key, {"suite": "abc", "parser": "2"}) as writer:
        writer.write(rows(table, 2))
        writer.write({column.name: [None, *values[:1]] for column, values in _columns(table, 2)})
    found = record.read(table, key)
    assert found.schema.equals(arrow_schema(table))
    assert found.num_rows == 4
    assert found.slice(0, 1).select([c.name for c in table.columns]).to_pylist() == [
        {name: values[0] for name, values in rows(table, 1).items()}
    ]
    assert found.slice(2, 1).select([c.name for c in table.columns]).to_pylist() == [
        {column.name: None for column in table.columns}
    ]
    header = record.header(table, key)
    assert header is not None
    assert header.made_from == {"suite": "abc", "parser": "2"}
    assert (header.rows, header.schema_version) == (4, table.version)
    assert record.verify(table, key) == header
    assert record.partitions(table) == [key]


def _columns(table, count):
    filled = rows(table, count)
    return [(column, filled[column.name]) for column in table.columns]


def test_columns_come_in_the_order_asked_for(record: Record) -> None:
    put(record, METRICS, key_of(), 2)
    assert record.read(METRICS, key_of(), ["value", "suite"]).to_pydict() == {
        "value": [0.5, 0.5],
        "suite": ["finqa", "finqa"],
    }


def test_a_table_without_rows_has_a_file(record: Record) -> None:
    with record.writer(EVIDENCE, key_of(), {}):
        pass
    assert record.read(EVIDENCE, key_of()).schema.equals(arrow_schema(EVIDENCE))
    assert record.read(EVIDENCE, key_of(), ["kind"]).num_rows == 0
    assert record.verify(EVIDENCE, key_of()).rows == 0


def test_times_are_kept_in_utc(record: Record) -> None:
    east = dt.timezone(dt.timedelta(hours=2))
    put(record, RUNS, key_of(), started_at=[dt.datetime(2026, 1, 1, 2, tzinfo=east)])
    assert record.read(RUNS, key_of(), ["started_at"]).to_pydict() == {"started_at": [dt.datetime(2026, 1, 1)]}


def test_lone_surrogates_do_not_stop_a_partition(record: Record) -> None:
    put(record, GENERATION_PROMPTS, key_of(), 2, text=["a\ud800b \ud83d\ude00", None])
    assert record.read(GENERATION_PROMPTS, key_of(), ["text"]).to_pydict() == {"text": ["a\ufffdb \U0001f600", None]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"value": [float("nan")]}, "metrics.value holds NaN or infinity"),
        ({"value": [float("inf")]}, "metrics.value holds NaN or infinity"),
        ({"value": ["much"]}, "metrics.value takes double"),
        ({"sample": [10**30]}, "metrics.sample takes int64"),
        ({"details": [{"a": 1}]}, "metrics.details takes string"),
        ({"details": ['{"a": NaN}']}, "metrics.details holds NaN, which is not JSON"),
        ({"details": ['{"a": -Infinity}']}, "metrics.details holds -Infinity, which is not JSON"),
        ({"label": ["a", "b"]}, "columns of different lengths"),
        ({"lable": ["a"]}, "columns missing or unknown: lable"),
    ],
)
def test_what_a_column_cannot_hold_is_refused(record: Record, given, message) -> None:
    with pytest.raises(ValueError, match=message), record.writer(METRICS, key_of(), {}) as writer:
        writer.write({**rows(METRICS, 1), **given})
    assert record.header(METRICS, key_of()) is None


def test_words_that_only_look_like_numbers_are_json(record: Record) -> None:
    put(record, METRICS, key_of(), details=['{"a": "NaN or Infinity"}'])
    assert record.header(METRICS, key_of()) is not None


def test_missing_columns_are_refused(record: Record) -> None:
    columns = rows(METRICS, 1)
    del columns["reason"]
    with pytest.raises(ValueError, match="missing or unknown: reason"), record.writer(METRICS, key_of(), {}) as writer:
        writer.write(columns)


def test_a_file_that_is_given_up_is_quiet_when_it_is_destroyed(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else Arrow has Python describe the error, at whatever moment: in the midst of `ast.parse`, 3.11 fails at that."""
    described: list[object] = []
    with pytest.raises(KeyError) as caught, record.writer(METRICS, key_of(), {}) as writer:
        raise KeyError
    monkeypatch.setattr(traceback, "format_exception", lambda *given: described.append(given) or [])
    del caught, writer
    gc.collect()
    assert described == []


def test_an_exception_leaves_everything_as_it_was(record: Record) -> None:
    put(record, METRICS, key_of())
    before = record.header(METRICS, key_of())

    def fail() -> None:
        with record.writer(METRICS, key_of(), {}) as writer:
            writer.write(rows(METRICS, 5000))
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail()
    assert record.header(METRICS, key_of()) == before
    assert [path.name for path in record.path(METRICS, key_of()).parent.iterdir()] == ["part.parquet"]


def test_large_rows_are_split_into_row_groups(record: Record) -> None:
    count = 10_000
    put(record, GENERATION_PROMPTS, key_of(), count, text=["x" * 5_000] * count)
    sizes = [group.nbytes for group in record.row_groups(GENERATION_PROMPTS, key_of())]
    assert len(sizes) > 2
    assert max(sizes) < 20 << 20


def test_content_hash_follows_content(record: Record) -> None:
    def written(key: RecordKey, **given) -> str:
        put(record, METRICS, key, 3, **given)
        header = record.header(METRICS, key)
        assert header is not None
        return header.content_hash

    first = written(key_of())
    assert written(key_of()) == first
    assert len(first) == 32
    assert written(key_of(), value=[0.5, 0.5, 0.25]) != first
    assert written(key_of("beta")) != first


def test_is_current(record: Record) -> None:
    assert not record.is_current(METRICS, key_of(), {"a": "1"})
    with record.writer(METRICS, key_of(), {"a": "1"}) as writer:
        writer.write(rows(METRICS, 1))
    assert record.is_current(METRICS, key_of(), {"a": "1"})
    assert not record.is_current(METRICS, key_of(), {"a": "2"})
    assert not record.is_current(METRICS, key_of(), {"a": "1", "b": "1"})
    assert not record.is_current(replace(METRICS, version=2), key_of(), {"a": "1"})
    wider = replace(METRICS, columns=(*METRICS.columns, Column("new", "DOUBLE", "")))
    assert not record.is_current(wider, key_of(), {"a": "1"}), "a track's columns change without a version"
