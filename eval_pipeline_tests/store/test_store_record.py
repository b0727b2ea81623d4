import datetime as dt
import gc
import os
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import astuple, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.keys import RecordKey, key_from_folders, key_from_texts
from eval_pipeline.store.listing import Gate, Listing
from eval_pipeline.store.record import Record
from eval_pipeline.store.schemas import Column, Table
from eval_pipeline.store.tables import (
    EVIDENCE,
    GENERATION_PROMPTS,
    METRICS,
    MODEL_VERSIONS,
    PROMPTS,
    RUNS,
    STATISTICS,
    SUITES,
    arrow_schema,
)
from eval_pipeline_tests.store.samples import RECORD_TABLES, key_of, put, rows


def some_key(table: object) -> RecordKey:
    kinds = {"suite": RecordKey.of_suite("finqa"), "model_version": RecordKey.of_model_version("alpha")}
    return kinds.get(getattr(table, "key", ""), key_of())


@pytest.mark.parametrize("table", RECORD_TABLES, ids=lambda table: table.name)
def test_what_is_written_is_read(record: Record, table) -> None:
    key, filled = some_key(table), rows(table, 2)
    with record.writer(table, key, {"suite": "abc", "parser": "2"}) as writer:
        writer.write(filled)
        writer.write({name: [None, *values[:1]] for name, values in filled.items()})
    found = record.read(table, key)
    assert found.schema.equals(arrow_schema(table))
    assert found.num_rows == 4
    assert found.select(list(filled)).to_pydict() == {name: [*two, None, two[0]] for name, two in filled.items()}
    header = record.header(table, key)
    assert header.made_from == {"suite": "abc", "parser": "2"}
    assert (header.rows, header.schema_version) == (4, table.version)
    assert record.verify(table, key) == header
    assert record.partitions(table) == [key]


@pytest.mark.parametrize(
    ("table", "given", "kept"),
    [
        (METRICS, {}, {"value": [0.5, 0.5], "suite": ["finqa", "finqa"]}),  # in the order asked for
        (RUNS, {"started_at": [dt.datetime(2026, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2)))] * 2},
         {"started_at": [dt.datetime(2026, 1, 1)] * 2}),  # in UTC
        (GENERATION_PROMPTS, {"text": ["a\ud800b \ud83d\ude00", None]}, {"text": ["a\ufffdb \U0001f600", None]}),
    ],
)  # fmt: skip
def test_values_come_back(record: Record, table: Table, given: dict[str, Any], kept: dict[str, Any]) -> None:
    put(record, table, key_of(), 2, **given)
    found = record.read(table, key_of(), list(kept)).to_pydict()
    assert (list(found), found) == (list(kept), kept)


def test_a_table_without_rows_has_a_file(record: Record) -> None:
    with record.writer(EVIDENCE, key_of(), {}):
        pass
    assert record.read(EVIDENCE, key_of()).schema.equals(arrow_schema(EVIDENCE))
    assert record.read(EVIDENCE, key_of(), ["kind"]).num_rows == 0
    assert record.verify(EVIDENCE, key_of()).rows == 0


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
        ({"reason": []}, "columns missing or unknown: reason"),
    ],
)
def test_what_a_column_cannot_hold_is_refused(record: Record, given, message) -> None:
    columns = {name: values for name, values in (rows(METRICS, 1) | given).items() if values}
    with pytest.raises(ValueError, match=message), record.writer(METRICS, key_of(), {}) as writer:
        writer.write(columns)
    assert record.header(METRICS, key_of()) is None


def test_words_that_only_look_like_numbers_are_json(record: Record) -> None:
    put(record, METRICS, key_of(), details=['{"a": "NaN or Infinity"}'])
    assert record.header(METRICS, key_of()) is not None


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


def test_rows_that_are_written_a_few_at_a_time_are_gathered(record: Record) -> None:
    with record.writer(GENERATION_PROMPTS, key_of(), {}) as writer:
        for _ in range(8):
            writer.write(rows(GENERATION_PROMPTS, 200, text=["x" * 5_000] * 200))  # a megabyte
    sizes = [group.nbytes for group in record.row_groups(GENERATION_PROMPTS, key_of())]
    assert min(sizes[:-1]) >= 2 << 20


def test_a_file_that_is_replaced_is_read_anew(record: Record) -> None:
    for values in ([0.5, 0.5], [0.5, 0.25]):
        put(record, METRICS, key_of(), 2, value=values)
        assert [record.read(METRICS, key_of(), ["value"])["value"].to_pylist() for _ in range(2)] == [values, values]


def test_content_hash_follows_content(record: Record) -> None:
    def written(key: RecordKey, **given) -> str:
        put(record, METRICS, key, 3, **given)
        header = record.header(METRICS, key)
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


def test_a_file_says_which_version_wrote_it_and_is_the_same_by_another(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes = set()
    for version in ("0.2.0", "0.3.0"):
        monkeypatch.setattr("eval_pipeline.store.parquet.writing.__version__", version)
        put(record, METRICS, key_of(), 3)
        header = record.header(METRICS, key_of())
        assert header is not None
        hashes.add((header.content_hash, *header.made_from.items()))
        told = pq.read_metadata(record.path(METRICS, key_of())).metadata[b"software"]
        assert told.decode() == f"eval-pipeline {version}"
    assert len(hashes) == 1


def test_missing_and_damaged_files_are_named(record: Record) -> None:
    path = record.path(METRICS, key_of())
    with pytest.raises(StoreError, match=r"part\.parquet does not exist; run the stage"):
        record.read(METRICS, key_of())
    path.parent.mkdir(parents=True)
    for junk in (b"", b"PAR1", b"not parquet at all, but long enough"):
        path.write_bytes(junk)
        with pytest.raises(StoreError, match=r"is damaged .* `eval-pipeline doctor --repair` makes it again") as caught:
            record.header(METRICS, key_of())
        assert str(path) in str(caught.value)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(StoreError, match="its footer is not one of eval-pipeline"):
        record.header(METRICS, key_of())


def test_a_flipped_bit_and_a_truncated_file_are_found(record: Record) -> None:
    put(record, METRICS, key_of(), 100)
    path = record.path(METRICS, key_of())
    data = bytearray(path.read_bytes())
    footer = int.from_bytes(data[-8:-4], "little")
    for place in range(4, len(data) - 8 - footer, 17):
        changed = bytearray(data)
        changed[place] ^= 0x10
        path.write_bytes(changed)
        with pytest.raises(StoreError, match="its bytes are not those that were written"):
            record.verify(METRICS, key_of())
    path.write_bytes(data[:-20])
    with pytest.raises(StoreError, match="is damaged"):
        record.read(METRICS, key_of())


def test_leftovers_of_killed_writers_are_swept(record: Record) -> None:
    folder = record.path(METRICS, key_of()).parent
    with record.writer(METRICS, key_of(), {}):
        (mine,) = folder.iterdir()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    gone = folder / mine.name.replace(f".{os.getpid()}.", f".{dead.pid}.")
    alive = folder / mine.name.replace(f".{os.getpid()}.", f".{os.getppid()}.")
    elsewhere = folder / ".part.parquet.0ther0st.1.1.tmp"
    old = folder / ".part.parquet.0ther0st.2.1.tmp"
    for path in (gone, alive, elsewhere, old):
        path.write_bytes(b"half")
    yesterday = time.time() - 90_000
    os.utime(old, (yesterday, yesterday))
    put(record, METRICS, key_of())
    assert set(folder.iterdir()) == {folder / "part.parquet", alive, elsewhere}


KILLED_WRITER = """
import os, sys
from pathlib import Path
from eval_pipeline.store.record import Record
from eval_pipeline.store.tables import METRICS
from eval_pipeline_tests.store.samples import key_of, rows
columns = rows(METRICS, 2000)
for root in sys.stdin:
    if child := os.fork():
        print("pid", child, flush=True)
        os.waitpid(child, 0)
        print("gone", flush=True)
        continue
    for turn in range(100_000):
        with Record(Path(root.strip())).writer(METRICS, key_of(), {"turn": str(turn)}) as writer:
            for _ in range(5):
                writer.write({**columns, "value": [float(turn)] * 2000})
        os.write(1, b"%d\\n" % turn)
"""


def test_a_killed_writer_leaves_the_last_whole_file(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED_WRITER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as nursery:
        for round_, pause in enumerate((0.013, 0.031, 0.071)):
            record = Record(tmp_path / str(round_))
            print(record.root, file=nursery.stdin, flush=True)
            writer = int(nursery.stdout.readline().removeprefix("pid "))
            while nursery.stdout.readline() != "1\n":
                pass
            time.sleep(pause)
            os.kill(writer, signal.SIGKILL)
            said = [1, *(int(line) for line in iter(nursery.stdout.readline, "gone\n"))]
            turn = int(record.verify(METRICS, key_of()).made_from["turn"])
            assert turn in {said[-1], said[-1] + 1}, "what was acknowledged is there"
            assert set(record.read(METRICS, key_of(), ["value"]).column("value").to_pylist()) == {float(turn)}
            put(record, METRICS, key_of())
            assert [path.name for path in record.path(METRICS, key_of()).parent.iterdir()] == ["part.parquet"]
        nursery.stdin.close()


FULL_DISK = """
import resource, sys
from pathlib import Path
from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.record import Record
from eval_pipeline.store.tables import GENERATION_PROMPTS
from eval_pipeline_tests.store.samples import key_of, put
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))
try:
    put(Record(Path(sys.argv[1])), GENERATION_PROMPTS, key_of(), 3000, text=[str(n) * 1000 for n in range(3000)])
except StoreError as error:
    print(error)
"""


def test_a_full_disk_changes_nothing(record: Record) -> None:
    put(record, GENERATION_PROMPTS, key_of())
    before = record.verify(GENERATION_PROMPTS, key_of())
    command = [sys.executable, "-c", FULL_DISK, str(record.root)]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert said.stdout.startswith("no room on the disk to write ")
    assert "part.parquet; free some and run again, nothing recorded so far is lost" in said.stdout
    assert said.stderr == ""
    assert record.verify(GENERATION_PROMPTS, key_of()) == before
    assert len(list(record.path(GENERATION_PROMPTS, key_of()).parent.iterdir())) == 1


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


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({"suite": "a", "model_version": "m", "eval_date": "2026-03-01"}, RecordKey("a", "m", dt.date(2026, 3, 1))),
        ({"suite": "a"}, RecordKey("a")),
        ({"suite": "a", "eval_date": "1 March"}, None),
        ({"suite": "a", "colour": "red"}, None),
        ({}, None),
    ],
)
def test_texts_are_a_key_or_none(texts: dict[str, str], expected: RecordKey | None) -> None:
    assert key_from_texts(texts) == expected


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
def test_partitions_within_a_key_are_those_with_its_parts(
    record: Record, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = dt.date(2026, 1, 5), dt.date(2026, 1, 6)
    keys = [key_of(model, day, suite) for model, day, suite in product((name, "other"), days, (name, "another"))]
    for key in keys:
        put(record, METRICS, key)
    walked: list[str] = []
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: walked.append(str(folder)) or listdir(folder))
    for parts in product([False, True], repeat=3):
        given = [part if is_given else None for part, is_given in zip((name, name, days[0]), parts, strict=True)]
        expected = [
            key for key in keys if all(part in (None, own) for part, own in zip(given, astuple(key)[:3], strict=True))
        ]
        walked.clear()
        assert record.partitions(METRICS, RecordKey(*given)) == sorted(expected, key=RecordKey.order)
        # Given parts are not looked for: one listing for each open part of the folders above it.
        folders = [1 if given else 2 for given in parts]
        assert len(walked) == sum(prod(folders[:depth]) for depth, given in enumerate(parts) if not given), parts


@pytest.mark.parametrize("change", ["nothing", "another", "written again", "removed"])
def test_a_partition_whose_files_change_after_they_were_listed_has_moved(record: Record, change: str) -> None:
    key = key_of()
    put(record, METRICS, key)
    listing = Listing(record, (), Gate(lambda key: None))
    assert listing.fresh({})
    match change:
        case "another":
            put(record, STATISTICS, key)
        case "written again":
            put(record, METRICS, key, 2)
        case "removed":
            record.remove(METRICS, key)
    assert listing.moved() == (set() if change == "nothing" else {key})
