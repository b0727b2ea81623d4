import json
import os
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
from eval_pipeline.store.publish import publish, publish_full
from eval_pipeline.store.query import connect_read_only
from eval_pipeline.store.record import Record
from eval_pipeline.store.tables import (
    METRICS,
)
from eval_pipeline_tests.store.samples import (
    TRACKS,
    ask,
    beside,
    contents,
    key_of,
    put,
)


@pytest.mark.usefixtures("published")
def test_a_damaged_file_of_the_record_is_named_and_the_store_kept(record: Record, out: Path) -> None:
    before = contents(out)
    put(record, METRICS, key_of(), 50)
    path = record.path(METRICS, key_of())
    data = bytearray(path.read_bytes())
    data[30] ^= 1
    path.write_bytes(data)
    for attempt in (publish, publish_full):
        with pytest.raises(StoreError, match=f"{path} is damaged .*; `eval-pipeline doctor --repair` makes it again"):
            attempt(record, out, TRACKS)
    assert contents(out) == before
    assert beside(out) == {"eval.duckdb", "eval.duckdb.lock"}
    path.unlink()
    assert publish(record, out, TRACKS).partitions_removed == 1


@pytest.mark.usefixtures("published")
def test_text_that_is_no_json_is_named(record: Record, out: Path) -> None:
    before = contents(out)
    put(record, METRICS, key_of("beta"), 2, details=["{}", "{half"])
    with pytest.raises(
        StoreError, match=r"metrics/suite=finqa/model_version=beta/.* holds text that is not JSON in details"
    ):
        publish(record, out, TRACKS)
    assert contents(out) == before


@pytest.mark.parametrize("damage", ["junk", "empty", "truncated", "flipped"])
@pytest.mark.usefixtures("published")
def test_a_damaged_store_is_built_anew(record: Record, out: Path, damage: str) -> None:
    good, status = contents(out), out.stat()
    data = out.read_bytes()
    damaged = {
        "junk": b"junk" * (len(data) // 4),
        "empty": b"",
        "truncated": data[: len(data) // 2],
        "flipped": data[:12_288] + bytes(byte ^ 0xFF for byte in data[12_288:]),
    }[damage]
    out.write_bytes(damaged)
    done = publish(record, out, TRACKS)
    assert done.full
    assert done.note == "eval.duckdb was not as the last publisher left it"
    assert contents(out) == good
    if len(damaged) == len(data):  # rotten without a trace: found when it is needed
        status = out.stat()
        out.write_bytes(damaged)
        os.utime(out, ns=(status.st_atime_ns, status.st_mtime_ns))
        lock = out.with_name("eval.duckdb.lock")
        head, lines = lock.read_text().split("\n", 1)
        memo = json.loads(head) | {"store": [out.stat().st_size, out.stat().st_mtime_ns]}
        lock.write_text(f"{json.dumps(memo)}\n{lines}")
        assert not publish(record, out, TRACKS).full, "nothing to do, so nothing is read"
        put(record, METRICS, key_of(), value=[0.125])
        done = publish(record, out, TRACKS)
        assert done.full
        assert done.note.startswith("eval.duckdb was damaged (")


@pytest.mark.usefixtures("published")
def test_what_another_program_wrote_is_undone(record: Record, out: Path) -> None:
    good = contents(out)
    foreign = duckdb.connect(str(out))
    foreign.execute("DELETE FROM metrics")
    foreign.close()
    assert publish(record, out, TRACKS).note == "eval.duckdb was not as the last publisher left it"
    assert contents(out) == good


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
    assert foreign.stdout is not None
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


@pytest.mark.parametrize(
    "memo", [b"", b"{", b"[]", b'{"store": [1], "schema": "", "files": {}}', b'{"files": {"a": 1}}']
)
@pytest.mark.usefixtures("published")
def test_a_lost_memo_costs_a_rebuild(record: Record, out: Path, memo: bytes) -> None:
    out.with_name("eval.duckdb.lock").write_bytes(memo)
    assert publish(record, out, TRACKS).full
    assert publish(record, out, TRACKS).tables == ()


@pytest.mark.usefixtures("published")
def test_a_damaged_memo_costs_a_rebuild_and_no_row(record: Record, out: Path) -> None:
    good, lock = contents(out), out.with_name("eval.duckdb.lock")
    data = lock.read_bytes()
    rng = random.Random(7)
    for place in [rng.randrange(len(data)) for _ in range(15)]:
        lock.write_bytes(data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :])
        publish(record, out, TRACKS)
        assert contents(out) == good, place


@pytest.mark.usefixtures("published")
def test_a_file_in_another_ones_place_is_told_and_not_published(record: Record, out: Path) -> None:
    key = key_of()
    good, other = contents(out), replace(key, eval_date=date(2031, 1, 1))
    copy = record.path(METRICS, other)
    copy.parent.mkdir(parents=True)
    shutil.copy2(record.path(METRICS, key), copy)
    with pytest.raises(DamagedFileError, match="it is the file of another evaluation, put there by hand"):
        publish(record, out, TRACKS)
    assert contents(out) == good
    copy.unlink()
    publish(record, out, TRACKS)
    assert contents(out) == good
