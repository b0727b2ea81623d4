"""The record in a bucket has the files of one in a folder; no host overwrites what it has not seen."""

import os
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from eval_pipeline.core.errors import DamagedFileError, StoreError
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.core.system.bucket_address import BucketAddress
from eval_pipeline.store.durable import replace_durably
from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.record import Contents, Record
from eval_pipeline.store.tables import METRICS, MODEL_VERSIONS, TURN_RESULTS
from eval_pipeline.workspace.runs import record_run, run_rows
from eval_pipeline.workspace.workspace import Workspace
from eval_pipeline_plugins.bucket import mirror
from eval_pipeline_plugins.bucket.bucket import ConflictError, FoundObject
from eval_pipeline_tests.fakes.bucket_server import BucketServer, Request
from eval_pipeline_tests.plugins.bucket.stores import Host, few
from eval_pipeline_tests.store.samples import RECORD_TABLES, key_of, put, rows

pytestmark = pytest.mark.services("bucket")
Hosts = tuple[Host, Host]


@pytest.fixture
def hosts(address: BucketAddress, tmp_path: Path) -> Hosts:
    return Host(tmp_path / "a", address), Host(tmp_path / "b", address)


def _object(table: str, key: RecordKey) -> str:
    folders = f"suite={key.suite}/model_version={key.model_version}/eval_date={key.eval_date}"
    return f"team/evals/record/{table}/{folders}/part.parquet"


def test_it_has_the_bytes_names_and_rows_of_one_in_a_folder(
    hosts: Hosts, server: BucketServer, address: BucketAddress, tmp_path: Path
) -> None:
    here, there = Record(tmp_path / "home" / "record"), hosts[0].record
    for record in (here, there):
        few(record)
        few(record, "beta")
        put(record, MODEL_VERSIONS, RecordKey.of_model_version("a b/ü" + "x" * 300))
    files = {path.relative_to(tmp_path / "home"): path.read_bytes() for path in here.root.rglob("*.parquet")}
    assert server.objects(address.bucket) == {f"team/evals/{name.as_posix()}": data for name, data in files.items()}
    other = hosts[1].record
    for table in RECORD_TABLES:
        assert other.partitions(table) == here.partitions(table)
        assert other.partitions(table, RecordKey("finqa", "alpha")) == here.partitions(
            table, RecordKey("finqa", "alpha")
        )
        for key in here.partitions(table):
            assert other.read(table, key).equals(here.read(table, key))
            assert list(other.row_groups(table, key, chosen=[])) == []
            assert other.header(table, key) == here.header(table, key)
            assert other.status(table, key) == there.status(table, key) == dict(there.files(table))[key]


def test_a_file_is_fetched_once_and_again_when_another_host_has_replaced_it(hosts: Hosts, server: BucketServer) -> None:
    a, b = hosts[0].record, hosts[1].record
    key = key_of()
    put(a, METRICS, key, value=[1.0])
    for _ in range(3):
        assert b.read(METRICS, key, ["value"]).to_pylist() == [{"value": 1.0}]
    fetched = [path for method, path in server.log if method == "GET" and path.endswith(".parquet")]
    assert len(fetched) == 1
    before = b.status(METRICS, key)
    put(a, METRICS, key, value=[2.0])
    assert b.status(METRICS, key) != before
    assert b.read(METRICS, key, ["value"]).to_pylist() == [{"value": 2.0}]
    assert a.remove(METRICS, key) and not a.remove(METRICS, key)
    assert b.header(METRICS, key) is None and b.partitions(METRICS) == [] and b.status(METRICS, key) is None
    assert not b.path(METRICS, key).exists()
    with pytest.raises(StoreError, match="does not exist"):
        b.read(METRICS, key)


@pytest.mark.parametrize("there", [False, True])
def test_a_writer_that_was_overtaken_writes_nothing(hosts: Hosts, there: bool) -> None:
    a, b = hosts[0].record, hosts[1].record
    key = key_of()
    if there:
        put(a, METRICS, key, value=[1.0])

    def overtaken() -> None:
        with a.writer(METRICS, key, {"made": "late"}) as writer:
            put(b, METRICS, key, value=[2.0])
            writer.write(rows(METRICS, 1, value=[3.0]))

    with pytest.raises(ConflictError, match=r"s3://.*part\.parquet was written by another host meanwhile; run again"):
        overtaken()
    for record in (a, b):
        assert record.read(METRICS, key, ["value"]).to_pylist() == [{"value": 2.0}]
    assert not list(hosts[0].folder.rglob("*.tmp"))


def test_an_older_copy_never_counts_as_a_newer_one(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    key, (reading, writing) = key_of(), (hosts[0].record, hosts[0].record)  # two processes of one host
    put(hosts[1].record, METRICS, key, value=[1.0])
    fetched, placed, done = threading.Event(), threading.Event(), threading.Event()
    fetch = reading.bucket.fetch

    def slowly(name: str, target: Path) -> FoundObject | None:
        found = fetch(name, target)
        fetched.set()
        placed.wait(0.3)
        return found

    def in_between(temporary: Path, target: Path) -> None:
        replace_durably(temporary, target)
        if threading.current_thread() is writer:
            placed.set()
            done.wait(0.3)

    def read() -> None:
        reading.header(METRICS, key)
        done.set()

    monkeypatch.setattr(reading.bucket, "fetch", slowly)
    monkeypatch.setattr(mirror, "replace_durably", in_between)
    reader = threading.Thread(target=read)
    reader.start()
    assert fetched.wait(60)
    writer = threading.Thread(target=lambda: put(writing, METRICS, key, value=[2.0]))
    writer.start()
    for thread in (reader, writer):
        thread.join(60)
    assert hosts[0].record.read(METRICS, key, ["value"]).to_pylist() == [{"value": 2.0}]


def test_rows_that_another_host_adds_at_the_same_moment_are_kept(
    address: BucketAddress, server: BucketServer, tmp_path: Path
) -> None:
    one, other = (Workspace(Home(tmp_path / name, tmp_path / "data", address)) for name in ("a", "b"))
    key = key_of()
    assert key.suite and key.model_version and key.eval_date
    place = Partition(key.suite, key.model_version, key.eval_date)
    record_run(one, place, "first")
    for when in range(4):  # the other host is in between at each of the requests
        seen: list[Request] = []

        def meanwhile(request: Request, when: int = when, seen: list[Request] = seen) -> None:
            seen.append(request)
            if len(seen) == when + 1:
                record_run(other, place, f"other {when}")

        server.before = meanwhile
        record_run(one, place, f"one {when}")
        server.before = lambda request: None
    expected = {"first", *(f"{who} {when}" for who in ("one", "other") for when in range(4))}
    assert {row["run_id"] for row in run_rows(one, place)} == expected


def test_a_file_that_others_rewrite_all_the_time_is_told(hosts: Hosts) -> None:
    a, b = hosts[0].record, hosts[1].record
    others = count(1.0)

    def overtaken() -> Contents:
        put(b, METRICS, key_of(), value=[next(others)])
        return {}, rows(METRICS, 1, value=[0.0])

    with pytest.raises(StoreError, match=r"is being written by other hosts all the time; run again"):
        a.rewrite(METRICS, key_of(), overtaken)
    assert a.read(METRICS, key_of(), ["value"]).to_pylist() == [{"value": 20.0}]


def test_what_others_put_beside_the_files_stays_and_is_no_file(
    hosts: Hosts, server: BucketServer, address: BucketAddress
) -> None:
    put(hosts[0].record, METRICS, key_of())
    for name in ("", "notes.txt", "part.parquet", "suite=finqa/", "suite=finqa/part.parquet"):
        server.client.put_object(Bucket=address.bucket, Key=f"team/evals/record/metrics/{name}", Body=b"")
    assert hosts[1].record.partitions(METRICS) == [key_of()]


def test_a_writer_that_fails_leaves_no_object(hosts: Hosts, server: BucketServer, address: BucketAddress) -> None:
    def failing() -> None:
        with hosts[0].record.writer(METRICS, key_of(), {}) as writer:
            writer.write(rows(METRICS, 1))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert server.objects(address.bucket) == {}


def test_a_flipped_bit_in_an_object_is_told_and_none_of_its_figures_is_used(
    hosts: Hosts, server: BucketServer, address: BucketAddress
) -> None:
    a, b, key = hosts[0].record, hosts[1].record, key_of()
    put(a, TURN_RESULTS, key)
    name = _object("turn_results", key)
    server.flip(address.bucket, name)
    told = f"s3://{address.bucket}/{name} is damaged .*`eval-pipeline doctor --repair` makes it again"
    calls: list[Callable[[], object]] = [
        lambda: b.read(TURN_RESULTS, key), lambda: b.verify(TURN_RESULTS, key), lambda: a.examine(TURN_RESULTS, key),
        lambda: a.read(TURN_RESULTS, key),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(DamagedFileError, match=told):
            call()


@pytest.mark.parametrize("place", [40, -40])
def test_a_damaged_copy_is_fetched_again(hosts: Hosts, place: int) -> None:
    a, b, key = hosts[0].record, hosts[1].record, key_of()
    put(a, METRICS, key, value=[1.0])
    rows_before = a.read(METRICS, key)
    b.header(METRICS, key)
    path = b.path(METRICS, key)
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    state = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))  # as a disk does it, which tells nobody
    assert b.read(METRICS, key).equals(rows_before)


def test_a_damaged_file_is_set_aside_from_the_bucket(hosts: Hosts, server: BucketServer, tmp_path: Path) -> None:
    a, key = hosts[0].record, key_of()
    put(a, METRICS, key)
    data = a.path(METRICS, key).read_bytes()
    a.set_aside(METRICS, key, tmp_path / "aside")
    assert a.header(METRICS, key) is None
    assert [path.read_bytes() for path in (tmp_path / "aside").rglob("*.parquet")] == [data]


def test_copies_of_what_another_host_has_removed_go_but_for_young_ones(hosts: Hosts) -> None:
    a, b = hosts[0].record, hosts[1].record
    few(a)
    few(a, "beta")
    gone, stays = key_of(), key_of("beta")
    for key in (gone, stays):
        assert b.read(METRICS, key).num_rows
    a.remove(METRICS, gone)
    copies = mirror.Mirror(b.root, b.bucket)
    copies.drop_gone()
    assert not copies._dropped.exists(), "nobody has told of it yet"
    mirror.Mirror(a.root, a.bucket).tell_removed()
    copies.drop_gone()
    assert b.path(METRICS, gone).exists(), "somebody may be reading it"
    for path in b.root.rglob("part.parquet"):
        os.utime(path, (0, 0))
    copies.drop_gone()
    assert not b.path(METRICS, gone).exists()
    assert b.path(METRICS, stays).exists()
