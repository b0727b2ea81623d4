"""Workers of Dask and a home in a bucket: parts are objects, and the file is that of a run without workers."""

from pathlib import Path

import pytest

from eval_pipeline.chain.shards import TURNS_A_SHARD
from eval_pipeline.operations.upkeep import doctor
from eval_pipeline.state.place import DATABASE_URL
from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.tables import EVIDENCE, MEASURED_EVIDENCE
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.shards.cluster import ADDRESS
from eval_pipeline_tests.chain.in_this_process import answered, compared
from eval_pipeline_tests.fakes.bucket_server import SECRET, BucketServer
from eval_pipeline_tests.plugins.bucket.hosts import Hosts
from eval_pipeline_tests.plugins.dask.dask_services import Services
from eval_pipeline_tests.remote import holding
from eval_pipeline_tests.servers import STATE_PASSWORD
from eval_pipeline_tests.support import Lab, Puppet

pytestmark = pytest.mark.services("postgres", "bucket", "dask")


@pytest.fixture
def services(hosts: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Services":
    """A scheduler and a worker with a working folder of its own, the bucket's keys, and no database."""
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    (tmp_path / "dask").mkdir()
    with monkeypatch.context() as patch:
        patch.delenv(DATABASE_URL)
        patch.setenv("EVAL_SCRATCH", str(tmp_path / "worker"))
        found = Services(tmp_path / "dask")
        found.worker()
    return found


def test_shards_of_a_home_in_a_bucket_write_the_same_bytes(
    hosts: Hosts, services: Services, server: BucketServer, puppet: type[Puppet], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    try:
        answered(Lab.at(tmp_path))
        at_a = hosts.use("a")
        compared(at_a, "shop", run=RunContext("run"))
        key = RecordKey.of(at_a.inputs("shop").place)
        name = f"team/evals/{at_a.workspace().record.path(EVIDENCE, key).relative_to(at_a.home.root)}"
        whole = server.objects(hosts.address.bucket)
        for table in (EVIDENCE, MEASURED_EVIDENCE):
            at_a.workspace().record.remove(table, key)
        server.log.clear()
        monkeypatch.setenv(ADDRESS, services.url)
        monkeypatch.setenv(TURNS_A_SHARD, "2")
        at_b = hosts.use("b")
        (told,) = doctor._cluster(at_b.workspace())
        assert "has " not in told.text, told.text
        facts = at_b.stage("evidence", at_b.inputs("shop", run=RunContext("run"))).facts
        there = server.objects(hosts.address.bucket)
    finally:
        services.end()
    assert facts["shards"] == 4
    assert there[name] == whole[name]
    assert there.keys() == whole.keys()
    put = [path for method, path in server.log if method == "PUT" and "/parts/evidence/" in path]
    assert len(put) == len(set(put)) == 4
    assert list((tmp_path / "worker").rglob("record/generations/**/part.parquet"))
    assert not at_b.home.parts.exists()
    assert holding(tmp_path, SECRET) == holding(tmp_path, STATE_PASSWORD) == []
