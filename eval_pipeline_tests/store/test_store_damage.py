import random
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

import duckdb
import pytest

from eval_pipeline.core.errors import DamagedFileError, StoreError
from eval_pipeline.store.published.memo import Memo, is_as_published, published_memo, store_status
from eval_pipeline.store.published.publish import publish, publish_full
from eval_pipeline.store.published.query import connect_read_only
from eval_pipeline.store.record import Record
from eval_pipeline.store.tables import METRICS
from eval_pipeline_tests.store.catalogs import State
from eval_pipeline_tests.store.samples import TRACKS, ask, beside, contents, key_of, put


@pytest.mark.usefixtures("published")
def test_a_damaged_file_of_the_record_is_named_and_the_store_kept(record: Record, out: Path, good: State) -> None:
    put(record, METRICS, key_of(), 50)
    path = record.path(METRICS, key_of())
    data = bytearray(path.read_bytes())
    data[30] ^= 1
    path.write_bytes(data)
    for attempt in (publish, publish_full):
        with pytest.raises(StoreError, match=f"{path} is damaged .*; `eval-pipeline doctor --repair` makes it again"):
            attempt(record, out, TRACKS)
    assert contents(out) == good
    assert beside(out) == {"eval.duckdb", "eval.duckdb.lock"}
    path.unlink()
    assert publish(record, out, TRACKS).partitions_removed == 1


@pytest.mark.always
@pytest.mark.usefixtures("published")
def test_text_that_is_no_json_is_named(record: Record, out: Path, good: State) -> None:
    put(record, METRICS, key_of("beta"), 2, details=["{}", "{half"])
    with pytest.raises(
        StoreError, match=r"metrics/suite=finqa/model_version=beta/.* holds text that is not JSON in details"
    ):
        publish(record, out, TRACKS)
    assert contents(out) == good


@pytest.mark.parametrize("damage", ["empty", "flipped"])
@pytest.mark.usefixtures("published")
def test_a_damaged_store_is_built_anew(record: Record, out: Path, damage: str, good: State) -> None:
    data = out.read_bytes()
    damaged = {"empty": b"", "flipped": data[:12_288] + bytes(byte ^ 0xFF for byte in data[12_288:])}[damage]
    out.write_bytes(damaged)
    done = publish(record, out, TRACKS)
    assert done.full
    assert done.note == "eval.duckdb was not as the last publisher left it"
    assert contents(out) == good
    if len(damaged) == len(data):  # rotten without a trace: found when it is needed
        out.write_bytes(damaged)
        with out.with_name("eval.duckdb.lock").open("r+b") as lock:
            memo = Memo.load(lock.fileno())
            replace(memo, store=store_status(out) or (0, 0)).save(lock.fileno())
        assert not publish(record, out, TRACKS).full, "nothing to do, so nothing is read"
        put(record, METRICS, key_of(), value=[0.125])
        done = publish(record, out, TRACKS)
        assert done.full
        assert done.note.startswith("eval.duckdb was damaged (")


@pytest.mark.usefixtures("published")
def test_what_another_program_wrote_is_undone(record: Record, out: Path, good: State) -> None:
    with duckdb.connect(str(out)) as foreign:
        foreign.execute("DELETE FROM metrics")
    assert publish(record, out, TRACKS).note == "eval.duckdb was not as the last publisher left it"
    assert contents(out) == good


@pytest.mark.usefixtures("published")
def test_a_copied_store_is_known_by_its_content(record: Record, out: Path) -> None:
    data = out.read_bytes()
    out.write_bytes(data)  # as a copy has it: the same bytes, another time
    assert is_as_published(out)
    for place in (1, len(data) // 2, len(data) - 1):
        out.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert not is_as_published(out), place
    for other in (data + b"\0", data[:-1], b""):
        out.write_bytes(other)
        assert not is_as_published(out)
    out.write_bytes(data)
    assert publish(record, out, TRACKS).tables == (), "nothing is built anew"
    assert published_memo(out).store == store_status(out), "the next look at it takes no checksum"


FOREIGN = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1])
connection.execute("CREATE TABLE mine (a INTEGER)")
connection.execute("INSERT INTO mine VALUES (1)")
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.usefixtures("published")
def test_a_store_that_others_have_open_is_published_all_the_same(record: Record, out: Path) -> None:
    foreign = subprocess.Popen(
        [sys.executable, "-c", FOREIGN, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert foreign.stdout.readline() == "open\n"
    log = out.with_name("eval.duckdb.wal")
    assert log.exists()
    with pytest.raises(StoreError, match=r"another program has .*eval\.duckdb open for writing"):
        connect_read_only(out)
    put(record, METRICS, key_of(), 9)
    publish(record, out, TRACKS)
    foreign.kill()
    foreign.communicate()
    assert not log.exists()
    assert ask(out, "SELECT count(*) FROM metrics") == [(12,)]
    assert ask(out, "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'mine'") == [(0,)]


@pytest.mark.usefixtures("published")
def test_an_open_reader_keeps_its_snapshot(record: Record, out: Path) -> None:
    reader = connect_read_only(out)
    put(record, METRICS, key_of(), 9)
    publish(record, out, TRACKS)
    assert reader.execute("SELECT count(*) FROM metrics").fetchall() == [(6,)]
    assert ask(out, "SELECT count(*) FROM metrics") == [(12,)], "a new one sees the new store, in the same process too"
    reader.close()


@pytest.mark.usefixtures("published")
def test_a_damaged_memo_is_none_and_costs_a_rebuild(record: Record, out: Path, good: State) -> None:
    lock = out.with_name("eval.duckdb.lock")
    data = lock.read_bytes()
    rng = random.Random(7)
    flips = [(rng.randrange(len(data)), rng.randrange(8)) for _ in range(200)]
    flipped = [data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :] for place, bit in flips]
    others = (b"", b"{", b"[]", b'{"store": [1], "schema": "", "files": {}}', b'{"files": {"a": 1}}')
    for damaged in (*others, *flipped):
        lock.write_bytes(damaged)
        assert published_memo(out) is None
    assert publish(record, out, TRACKS).full
    assert contents(out) == good
    assert publish(record, out, TRACKS).tables == ()


@pytest.mark.usefixtures("published")
def test_a_file_in_another_ones_place_is_told_and_not_published(record: Record, out: Path, good: State) -> None:
    key = key_of()
    other = replace(key, eval_date=date(2031, 1, 1))
    copy = record.path(METRICS, other)
    copy.parent.mkdir(parents=True)
    shutil.copy2(record.path(METRICS, key), copy)
    with pytest.raises(DamagedFileError, match="it is the file of another evaluation, put there by hand"):
        publish(record, out, TRACKS)
    assert contents(out) == good
    copy.unlink()
    publish(record, out, TRACKS)
    assert contents(out) == good
