"""The record in a bucket has the files of one in a folder; no host overwrites what it has not seen."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from eval_pipeline.core.bucket_address import BucketAddress
from eval_pipeline.core.errors import DamagedFileError, StoreError
from eval_pipeline.objects.bucket import ConflictError
from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.mirrored.mirror import Mirror
from eval_pipeline.store.record import Record
from eval_pipeline.store.tables import METRICS, MODEL_VERSIONS, TURN_RESULTS
from eval_pipeline_tests.fakes.bucket_server import BucketServer
from eval_pipeline_tests.objects.stores import Host, few
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
    mirror = Mirror(b.root, b.bucket)
    mirror.drop_gone()
    assert b.path(METRICS, gone).exists(), "somebody may be reading it"
    for path in b.root.rglob("part.parquet"):
        os.utime(path, (0, 0))
    mirror.drop_gone()
    assert not list(b.path(METRICS, gone).parent.iterdir())
    assert b.path(METRICS, stays).exists()
