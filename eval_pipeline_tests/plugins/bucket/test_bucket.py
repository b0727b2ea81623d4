"""The port to a bucket: conditional writes, and what is told when the bucket fails."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from eval_pipeline.core.errors import DamagedFileError, MissingExtraError, StoreError, UsageError
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.core.system.bucket_address import BucketAddress, bucket_address, working_folder
from eval_pipeline.store.tables import EVIDENCE
from eval_pipeline.workspace.homes.places import place_of
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.shards.parts import open_part, part_path, part_rows
from eval_pipeline.workspace.workspace import Workspace
from eval_pipeline_plugins.bucket import bucket as port
from eval_pipeline_plugins.bucket.bucket import Bucket, ConflictError
from eval_pipeline_plugins.bucket.conditions import broken_condition
from eval_pipeline_tests.fakes.bucket_server import SECRET, BucketServer

pytestmark = pytest.mark.services("bucket")
ENV = {"EVAL_DATABASE_URL": "postgresql://a@127.0.0.1/b"}


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield f"http://127.0.0.1:{found.getsockname()[1]}"


def test_an_object_is_written_only_if_it_is_as_it_was(bucket: Bucket, tmp_path: Path) -> None:
    assert bucket.look("a/b=%20c") is None and bucket.read("a/b=%20c") is None
    assert bucket.fetch("a/b=%20c", tmp_path / "none") is None
    first = bucket.put("a/b=%20c", b"one", None)
    with pytest.raises(ConflictError, match="was written by another host meanwhile"):
        bucket.put("a/b=%20c", b"two", None)
    second = bucket.put("a/b=%20c", b"two", first)
    with pytest.raises(ConflictError):
        bucket.put("a/b=%20c", b"three", first)
    with pytest.raises(ConflictError):
        bucket.put("gone", b"three", first)
    found = bucket.look("a/b=%20c")
    assert found is not None and (found.size, found.etag) == (3, second)
    assert bucket.fetch("a/b=%20c", tmp_path / "file") == found
    assert (tmp_path / "file").read_bytes() == b"two"
    assert bucket.read("a/b=%20c") == (b"two", found)
    assert list(bucket.list("a")) == [found]
    assert list(bucket.list("a/b")) == []
    bucket.delete("a/b=%20c")
    bucket.delete("a/b=%20c")
    assert list(bucket.list("a")) == []


def test_a_write_whose_answer_was_lost_is_no_conflict(bucket: Bucket) -> None:
    first = bucket.put("x", b"one", None)
    assert bucket.put("x", b"one", None) == first
    second = bucket.put("x", b"two", first)
    assert bucket.put("x", b"two", first) == second


@pytest.mark.parametrize("how", ["503", "unreachable", "silent", "no bucket", "wrong key"])
def test_a_bucket_that_fails_is_told_in_a_sentence(
    address: BucketAddress, server: BucketServer, silent: str, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(port, "PATIENCE_S", 0.5)
    if how == "503":
        server.failing = "503 Service Unavailable"
    elif how == "unreachable":
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    asked = BucketAddress("missing-403", "x") if how == "no bucket" else address
    if how == "wrong key":
        server.failing = "403 Forbidden"
    calls = [lambda it: it.put("x", b"data", None), lambda it: list(it.list("x"))]
    if how == "silent":
        monkeypatch.setattr(port, "ANSWER_S", 0.1)
        monkeypatch.setenv("AWS_ENDPOINT_URL", silent)
        calls += [lambda it: it.look("x"), lambda it: it.read("x"), lambda it: it.delete("x")]
    for call in calls:
        with pytest.raises(StoreError) as caught:
            call(Bucket(asked))
        said = str(caught.value)
        assert str(asked) in said and "\n" not in said and len(said) < 500 and SECRET not in said
        assert ("refuses; check AWS_ACCESS_KEY_ID" if how == "wrong key" else "nothing recorded is lost") in said


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_what_is_in_the_clear_does_not_go_to_a_proxy(
    address: BucketAddress, server: BucketServer, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setattr(port, "PATIENCE_S", 0.1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url.replace("127.0.0.1", host))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert Bucket(address).put("x", b"a prompt", None)


def test_a_missing_extra_is_told(address: BucketAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MissingExtraError, match="needs obstore; install with "):
        Bucket(address)


def test_addresses() -> None:
    assert bucket_address("/some/folder", {}) is None
    assert bucket_address("s3://b/team//evals/", ENV) == BucketAddress("b", "team/evals")
    assert str(bucket_address("s3://b", ENV)) == "s3://b"
    loopback = ENV | {"AWS_ENDPOINT_URL": "http://127.0.0.1:9000"}
    assert bucket_address("s3://b/p", loopback | {"EVAL_STORE": "catalog"}) == BucketAddress("b", "p")


@pytest.mark.parametrize(
    ("home", "env", "told"),
    [
        ("s3://b/p", {}, "needs EVAL_DATABASE_URL"),
        ("s3://b/p", ENV | {"EVAL_STORE": "file"}, "published as a catalog; unset EVAL_STORE"),
        ("gs://b/p", ENV, "begins with 'gs://'; expected s3://bucket/prefix"),
        ("s3://", ENV, "malformed"),
        ("s3://key:secret@b/p", ENV, "malformed"),
        ("s3://b:9000/p", ENV, "malformed"),
        ("s3://b/p?region=x", ENV, "malformed"),
        ("s3://b/../p", ENV, "has a prefix with"),
        ("s3://b/p", ENV | {"AWS_ENDPOINT_URL": "http://store.example:9000"}, "it has to be https://"),
        ("s3://b/p", ENV | {"AWS_ENDPOINT_URL_S3": "http://10.0.0.1"}, "it has to be https://"),
        ("s3://b/p", ENV | {"AWS_ENDPOINT_URL": "127.0.0.1:9000"}, "malformed"),
        ("s3://b/p", ENV | {"AWS_ENDPOINT_URL": "https://me:secret@store.example"}, "has a user or password in it"),
    ],
)
def test_what_a_home_in_a_bucket_needs_is_told(home: str, env: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        bucket_address(home, env)
    assert "secret" not in str(caught.value)


def test_each_bucket_has_a_working_folder_of_its_own(tmp_path: Path) -> None:
    env = {"EVAL_SCRATCH": str(tmp_path)}
    others = [
        working_folder(BucketAddress("b", "p"), env),
        working_folder(BucketAddress("b", "q"), env),
        working_folder(BucketAddress("b", "p"), env | {"AWS_ENDPOINT_URL": "https://store.example"}),
    ]
    assert len(set(others)) == 3 and {found.parent for found in others} == {tmp_path}
    assert working_folder(BucketAddress("b", "p"), {"XDG_CACHE_HOME": "/c"}).parent == Path("/c/eval-pipeline")


OF_LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
from eval_pipeline.core.system.bucket_address import BucketAddress
from eval_pipeline_plugins.bucket.bucket import Bucket

bucket, file, spare = Bucket(BucketAddress(sys.argv[1], sys.argv[2])), Path(sys.argv[3]), int(sys.argv[4])
bucket.put("small", b"x" * 5_000_000, None)
(used,) = (int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (used * 1024 + spare, used * 1024 + spare))
print(bucket.put_file("large", file, None), bucket.put_file("large", file, None))
"""


def test_a_large_file_is_put_without_being_held_in_memory(
    address: BucketAddress, server: BucketServer, bucket: Bucket, tmp_path: Path
) -> None:
    file = tmp_path / "large"
    file.write_bytes(b"0123456789abcdef" * (4 << 20))  # 64 MiB
    command = [sys.executable, "-c", OF_LITTLE_MEMORY, address.bucket, address.prefix, file, str(40 << 20)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    first, again = ran.stdout.split()
    assert first == again, "its answer was lost, and the object has the same bytes"
    assert server.objects(address.bucket)[f"{address.prefix}/large"] == file.read_bytes()
    with file.open("r+b") as changed:
        changed.seek(60 << 20)
        changed.write(b"x")
    with pytest.raises(ConflictError):
        bucket.put_file("large", file, None)
    assert bucket.put_file("large", file, first) != first


def test_of_several_writers_one_wins_and_nothing_is_left(
    bucket: Bucket, server: BucketServer, address: BucketAddress
) -> None:
    assert broken_condition(bucket) is None
    assert server.objects(address.bucket) == {}


@pytest.mark.parametrize("how", ["always", "early"])
def test_a_store_that_lets_several_win_is_told(
    bucket: Bucket, server: BucketServer, address: BucketAddress, how: str
) -> None:
    server.careless = how
    assert broken_condition(bucket) == "of 4 that wrote one new object at once, 4 won, and not one"
    server.careless = ""
    assert server.objects(address.bucket) == {}


def test_a_store_that_replaces_what_is_not_as_it_was_is_told(bucket: Bucket, server: BucketServer) -> None:
    def careless(request: tuple[str, str]) -> None:
        if sum(method == "PUT" for method, _ in server.log) > 4:
            server.careless = "always"

    server.before = careless
    assert broken_condition(bucket) == "of 4 that replaced one object at once, 4 won, and not one"


@pytest.mark.parametrize("careless", ["always", ""])
def test_what_was_found_is_told_where_nothing_can_be_removed(
    bucket: Bucket, server: BucketServer, monkeypatch: pytest.MonkeyPatch, careless: str
) -> None:
    def refused(*_: object) -> None:
        raise StoreError("its keys may not delete")

    monkeypatch.setattr(Bucket, "delete", refused)
    server.careless = careless
    if careless:
        assert "4 won" in str(broken_condition(bucket))
    else:
        with pytest.raises(StoreError, match="may not delete"):
            broken_condition(bucket)


DAY = date(2026, 3, 1)
NAME = "team/evals/parts/evidence/suite=shop/model_version=puppet/eval_date=2026-03-01/a.jsonl"


@pytest.fixture(params=["folder", "bucket"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    bucket: BucketAddress | None = None
    if request.param == "bucket":
        bucket = request.getfixturevalue("address")
    return Home(tmp_path / "home", tmp_path / "data", bucket)


def inputs_of(home: Home, version: str = "puppet") -> Inputs:
    return Inputs.of(Workspace(home), Partition("shop", version, DAY))


def put(home: Home, kind: str, version: str = "puppet") -> Path:
    inputs = inputs_of(home, version)
    path = part_path(inputs, "evidence", "a")
    with open_part(inputs, (EVIDENCE,), path) as outputs:
        outputs.line("evidence", {"kind": [kind]})
    return path


def test_the_first_part_wins_and_hosts_read_it(home: Home, tmp_path: Path) -> None:
    path, files = put(home, "first"), place_of(home).parts()
    put(home, "second")
    assert files.exists(path)
    other = home if home.bucket is None else Home(tmp_path / "other", home.data, home.bucket)
    there = part_path(inputs_of(other), "evidence", "a")
    assert list(part_rows(place_of(other).parts(), there)) == [("evidence", {"kind": "first"})]
    assert not list(home.root.rglob("*.tmp")) and not list(other.root.rglob("*.tmp"))
    assert home.bucket is None or not list(home.root.rglob("*.jsonl"))


def test_parts_of_an_evaluation_go_and_others_stay(home: Home) -> None:
    gone, stays = put(home, "x"), put(home, "x", "others")
    files = place_of(home).parts()
    (folder,) = files.folders(("suite=*", "model_version=puppet"))
    files.drop(folder)
    assert not files.exists(gone) and files.exists(stays)
    files.drop(stays.parent)
    assert not home.parts.exists() and files.folders(("suite=*",)) == []
    with pytest.raises(StoreError, match="it is not there; give workers the same home"):
        list(part_rows(files, gone))


def test_a_damaged_part_is_named_and_removed(server: BucketServer, address: BucketAddress, tmp_path: Path) -> None:
    home = Home(tmp_path / "home", tmp_path / "data", address)
    path = put(home, "first")
    server.flip(address.bucket, NAME, -40)
    with pytest.raises(DamagedFileError, match=f"{address}/{NAME.removeprefix('team/evals/')} is not what was written"):
        list(part_rows(place_of(home).parts(), path))
    assert server.objects(address.bucket) == {}
