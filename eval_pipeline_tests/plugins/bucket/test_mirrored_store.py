"""The catalog in a bucket: what hosts publish at once is all there, and a killed publisher leaves the old state."""

import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.system.bucket_address import BucketAddress
from eval_pipeline.store.catalog import sweeping
from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.published.publish import publish
from eval_pipeline.store.record import Record
from eval_pipeline_plugins.bucket import mirror
from eval_pipeline_plugins.bucket import publisher as publishing
from eval_pipeline_plugins.bucket.publisher import MirroredPublisher
from eval_pipeline_tests.fakes.bucket_server import BucketServer, Request
from eval_pipeline_tests.plugins.bucket.stores import Host, few
from eval_pipeline_tests.store.samples import TRACKS, contents, key_of, remove_partition
from eval_pipeline_tests.store.test_manifests import newer
from eval_pipeline_tests.support import ROOT

pytestmark = pytest.mark.services("bucket")
Hosts = tuple[Host, Host]


@pytest.fixture
def hosts(address: BucketAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hosts:
    monkeypatch.setattr(sweeping, "_OPENING_S", 0.0)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    return Host(tmp_path / "a", address), Host(tmp_path / "b", address)


def of_files(record: Record, folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """What a store of one file has of the same record."""
    publish(record, folder / "one" / "eval.duckdb", TRACKS)
    return contents(folder / "one" / "eval.duckdb")


def test_every_host_shows_what_a_store_of_one_file_has(hosts: Hosts, tmp_path: Path) -> None:
    here = Record(tmp_path / "home" / "record")
    for record in (here, hosts[0].record):
        few(record)
        few(record, "beta")
    (tmp_path / "one").mkdir()
    expected = of_files(here, tmp_path)
    assert hosts[0].publish().tables
    assert hosts[0].shown() == hosts[1].shown() == expected
    assert hosts[1].problems() == []
    assert not hosts[1].publish().tables and not hosts[0].publish().tables  # up to date
    for record in (here, hosts[1].record):
        few(record, "beta", value=0.5)
        remove_partition(record, key_of("alpha"))
    assert hosts[1].publish().partitions_replaced
    assert hosts[0].shown() == of_files(here, tmp_path)


def test_nothing_is_shown_before_anything_is_published(hosts: Hosts) -> None:
    hosts[0].publisher.refresh(10)
    with pytest.raises(StoreError, match="no store at"):
        contents(hosts[0].out)


def test_two_who_publish_at_once_lose_nothing(hosts: Hosts, server: BucketServer) -> None:
    a, b = hosts
    few(a.record)
    few(a.record, suite="other")
    a.publish()
    few(a.record, suite="other", value=0.5)
    met: list[Request] = []

    def meanwhile(request: Request) -> None:
        if request[0] == "PUT" and request[1].endswith(".manifest") and not met:
            met.append(request)
            few(b.record, "beta")
            few(b.record, "gamma", "other")
            b.publish()

    server.before = meanwhile
    a.publish()
    assert met
    shown = a.shown()
    assert {name: len(shown[name]) for name in ("metrics", "model_versions")} == {"metrics": 4, "model_versions": 3}
    assert [row for row in shown["metrics"] if 0.5 in row]
    assert b.shown() == shown
    assert a.problems() == []


@pytest.mark.parametrize(
    "what",
    [
        pytest.param("record/metrics/", marks=pytest.mark.soak),
        pytest.param("catalog/parts/metrics/", marks=pytest.mark.soak),
        "catalog/manifests/suite=finqa",
    ],
)
def test_a_host_that_is_killed_while_it_uploads_leaves_the_old_state(
    hosts: Hosts, server: BucketServer, address: BucketAddress, what: str
) -> None:
    a, b = hosts
    few(a.record)
    a.publish()
    before, reached, killed = b.shown(), threading.Event(), threading.Event()

    def wait(request: Request) -> bool:
        if request[0] != "PUT" or f"/{what}" not in request[1] or killed.is_set():
            return False
        reached.set()
        killed.wait(60)
        return True

    server.before = wait
    command = [sys.executable, "-m", "eval_pipeline_tests.plugins.bucket.stores", address.bucket, address.prefix]
    host = subprocess.Popen([*command, str(a.folder), "0.25"], cwd=ROOT)
    try:
        assert reached.wait(60)
        host.send_signal(signal.SIGKILL)
        host.wait()
    finally:
        host.kill()
        killed.set()
    assert b.shown() == before and b.problems() == []
    few(a.record, value=0.25)
    a.publish()
    assert [row for row in b.shown()["metrics"] if 0.25 in row] and a.problems() == []
    assert not list(a.folder.rglob("*.tmp"))


@pytest.mark.parametrize(
    ("what", "how"),
    [
        ("parts/metrics/", "flipped"),
        pytest.param("manifests/suite=", "flipped", marks=pytest.mark.soak),
        pytest.param("parts/metrics/", "missing", marks=pytest.mark.soak),
        pytest.param("manifests/suite=", "missing", marks=pytest.mark.soak),
    ],
)
def test_a_damaged_object_is_told_and_mended(
    hosts: Hosts, server: BucketServer, address: BucketAddress, what: str, how: str
) -> None:
    a, b = hosts
    few(a.record)
    a.publish()
    expected = a.shown()
    name = next(name for name in server.objects(address.bucket) if f"/catalog/{what}" in name)
    if how == "flipped":
        server.flip(address.bucket, name)
    else:
        server.client.delete_object(Bucket=address.bucket, Key=name)
    if what.startswith("parts"):
        told = "is damaged" if how == "flipped" else "is missing"
        assert a.problems() == [f"s3://{address.bucket}/{name} {told}"]
        with pytest.raises(StoreError, match=told):
            b.shown()
    elif how == "flipped":
        (told,) = a.problems()
        assert told == f"the manifest s3://{address.bucket}/{name} is damaged"
    a.publish(full=how == "flipped" or what.startswith("parts"))
    assert a.problems() == [] and b.problems() == []
    assert b.shown() == a.shown() == expected


def test_a_manifest_of_a_newer_version_is_left_alone_and_other_bytes_behind_an_etag_are_mended(
    hosts: Hosts, server: BucketServer, address: BucketAddress
) -> None:
    a, b = hosts
    few(a.record)
    a.publish()
    expected = a.shown()
    name = next(name for name in server.objects(address.bucket) if "/manifests/suite=" in name)
    written = newer(server.objects(address.bucket)[name])
    server.client.put_object(Bucket=address.bucket, Key=name, Body=written)
    told = f"^the manifest s3://{address.bucket}/{name} was written by a newer eval-pipeline"
    for call in (a.publish, b.publish, a.shown, b.shown):
        with pytest.raises(StoreError, match=told):
            call()
    assert server.objects(address.bucket)[name] == written
    (problem,) = b.problems()
    assert re.match(told, problem)
    b.publish(full=True)
    assert a.shown() == expected

    server.flip(address.bucket, name)
    copy = a.folder / "catalog" / "manifests" / Path(name).name
    found = a.record.bucket.look(name.removeprefix(f"{address.prefix}/"))
    mirror._note(copy).write_text(f"{found.etag}\n{mirror._state(copy)}")  # as if it had been fetched whole
    assert a.publish(full=True).full
    assert b.problems() == [] and b.shown() == expected


def test_what_is_published_while_parts_are_examined_is_no_damage(
    hosts: Hosts, server: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eval_pipeline.store.catalog.publisher.write_catalog", lambda target, *_: target.touch())
    a, b = hosts
    few(a.record)
    a.publish()
    met: list[Request] = []

    def meanwhile(request: Request) -> None:
        if request[0] == "GET" and "/catalog/parts/metrics/" in request[1] and not met:
            met.append(request)
            few(a.record, value=0.25)
            a.publish()
            server.client.delete_object(Bucket=a.address.bucket, Key=request[1].split("/", 2)[2])  # swept

    server.before = meanwhile
    assert b.problems() == [] and met


def test_parts_that_no_manifest_names_go_after_a_while(
    hosts: Hosts, server: BucketServer, address: BucketAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = hosts
    few(a.record)
    a.publish()
    names = _parts(server, address)
    of_others = ("parts/", "parts/notes.txt", "manifests/", "manifests/notes.txt", "manifests/old/suite=a.manifest")
    for name in of_others:
        server.client.put_object(Bucket=address.bucket, Key=f"{address.prefix}/catalog/{name}", Body=b"mine")
    few(a.record, value=0.25)
    a.publish()
    assert names < _parts(server, address)
    monkeypatch.setattr(publishing, "GRACE", timedelta(days=-1))
    few(b.record, value=0.75)
    b.publish()
    left = _parts(server, address)
    assert not names <= left
    kept = {f"{address.prefix}/catalog/{name}" for name in of_others}
    assert {data for name, data in server.objects(address.bucket).items() if name in kept} == {b"mine"}
    assert left - kept == {f"{address.prefix}/catalog/parts/{place}.parquet" for place in b.publisher._pull().places()}
    assert a.shown() == b.shown() and a.problems() == []


def _parts(server: BucketServer, address: BucketAddress) -> set[str]:
    return {name for name in server.objects(address.bucket) if "/catalog/parts/" in name}


@pytest.mark.parametrize(("small", "large"), [(1, 3), pytest.param(10, 100, marks=pytest.mark.soak)])
def test_publishing_one_more_evaluation_asks_the_bucket_as_often_in_a_large_store(
    address: BucketAddress,
    server: BucketServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    small: int,
    large: int,
) -> None:
    monkeypatch.setattr("eval_pipeline.store.catalog.publisher.write_catalog", lambda target, *_: target.touch())
    few_there = _requests_of_one_more(server, tmp_path, small)
    assert _requests_of_one_more(server, tmp_path, large) == few_there


def _requests_of_one_more(server: BucketServer, folder: Path, size: int) -> list[Counter[tuple[str, str]]]:
    """What a host, and then another one, asks for to publish an evaluation more; by method and kind of object."""
    address, found = BucketAddress(f"of{size}", "team/evals"), []
    server.client.create_bucket(Bucket=address.bucket)
    hosts = [Host(folder / f"{name}{size}", address) for name in "ab"]
    for host in hosts:
        host.folder.mkdir()
    for number in range(size):
        few(hosts[0].record, f"model{number}")
    hosts[0].publish()
    hosts[1].publisher.refresh(10)
    for host, model in zip(hosts, ("one", "two"), strict=True):
        few(host.record, model)
        begin = len(server.log)
        keys = [key_of(model), RecordKey.of_suite("finqa"), RecordKey.of_model_version(model)]
        assert publish(host.record, host.out, TRACKS, keys).partitions_replaced
        found.append(Counter((method, "/".join(path.split("/")[4:6])) for method, path in server.log[begin:]))
        assert found[-1]["GET", ""] == 1, "only the manifests are listed, neither the record nor the parts"
    return found


def test_what_a_host_killed_between_two_manifests_left_is_mended_though_another_has_looked(
    hosts: Hosts, server: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = hosts
    few(a.record)
    a.publish()
    put = MirroredPublisher._put_manifest

    def killed(self: MirroredPublisher, name: str, text: bytes) -> None:
        if name.startswith("model_versions"):
            raise KeyboardInterrupt
        put(self, name, text)

    few(a.record, "beta")
    with monkeypatch.context() as patch:
        patch.setattr(MirroredPublisher, "_put_manifest", killed)
        with pytest.raises(KeyboardInterrupt):
            a.publish()
    assert len(b.shown()["model_versions"]) == 1
    few(b.record, "gamma")
    publish(b.record, b.out, TRACKS, [key_of("gamma"), RecordKey.of_model_version("gamma")])
    assert {name: len(b.shown()[name]) for name in ("model_versions", "metrics")} == {"model_versions": 3, "metrics": 3}
