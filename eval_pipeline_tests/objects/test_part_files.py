"""Parts of shards are kept in a folder and in a bucket alike: the first wins, and a damaged one goes."""

from datetime import date
from pathlib import Path

import pytest

from eval_pipeline.core.bucket_address import BucketAddress
from eval_pipeline.core.errors import DamagedFileError, StoreError
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.store.tables import EVIDENCE
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.part_files import part_files
from eval_pipeline.workspace.parts import open_part, part_path, part_rows
from eval_pipeline.workspace.workspace import Workspace
from eval_pipeline_tests.fakes.bucket_server import BucketServer

pytestmark = pytest.mark.services("bucket")
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
    path, files = put(home, "first"), part_files(home)
    put(home, "second")
    assert files.exists(path)
    other = home if home.bucket is None else Home(tmp_path / "other", home.data, home.bucket)
    there = part_path(inputs_of(other), "evidence", "a")
    assert list(part_rows(part_files(other), there)) == [("evidence", {"kind": "first"})]
    assert not list(home.root.rglob("*.tmp")) and not list(other.root.rglob("*.tmp"))
    assert home.bucket is None or not list(home.root.rglob("*.jsonl"))


def test_parts_of_an_evaluation_go_and_others_stay(home: Home) -> None:
    gone, stays = put(home, "x"), put(home, "x", "others")
    files = part_files(home)
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
        list(part_rows(part_files(home), path))
    assert server.objects(address.bucket) == {}
