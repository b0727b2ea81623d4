"""`remove` on a home in a bucket: nothing of the model version stays in it, whichever host removes."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval_pipeline_tests.fakes.anthropic_server import AnthropicServer
from eval_pipeline_tests.fakes.bucket_server import BucketServer
from eval_pipeline_tests.objects.hosts import Hosts
from eval_pipeline_tests.remote import RUN, VERSION, answers, charged, prepare
from eval_pipeline_tests.support import Lab

pytestmark = pytest.mark.services("postgres", "bucket")


@pytest.fixture
def model(tmp_path: Path) -> Iterator[AnthropicServer]:
    with AnthropicServer(answers) as found:
        prepare(Lab.at(tmp_path), found, conversations=1)
        yield found


def copies(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("part.parquet") if f"model_version={VERSION}" in path.parts]


@pytest.mark.soak
def test_another_host_removes_every_response(
    hosts: Hosts, server: BucketServer, model: AnthropicServer, tmp_path: Path
) -> None:
    ran = hosts.run("a", *RUN)
    assert ran.code == 0, ran.text
    evaluation = f"suite=small/model_version={VERSION}/eval_date=2026-03-01"
    stray = {
        f"team/evals/record/of_a_package/{evaluation}/part.parquet": b"of a table that nobody knows",
        f"team/evals/parts/evidence/{evaluation}/a.jsonl": b"of a run that was killed",
        "team/evals/parts/evidence/suite=small/model_version=other/eval_date=2026-03-01/a.jsonl": b"stays",
    }
    for name, data in stray.items():
        server.client.put_object(Bucket=hosts.address.bucket, Key=name, Body=data)
    *gone, stays = stray
    told = hosts.run("b", "remove", "--model-version", VERSION, "--purge", "--dry-run")
    assert told.code == 0 and f"small · {VERSION}" in told.out, told.text
    assert {*stray} <= server.objects(hosts.address.bucket).keys()
    said = hosts.run("b", "remove", "--model-version", VERSION, "--purge", "--yes")
    assert said.code == 0, said.text
    left = server.objects(hosts.address.bucket)
    assert not [name for name in left if f"model_version={VERSION}/" in name]
    assert stays in left and not {*gone} & left.keys()
    assert not [name for name in left if "/catalog/parts/turn_results/" in name]
    assert not copies(tmp_path / "b")
    assert hosts.run("b", "query", "SELECT count(*) FROM turn_results", "--format", "csv").out.split()[-1] == "0"

    # The other host drops its copies when it publishes next, but for those that somebody may just read.
    assert copies(tmp_path / "a")
    an_hour_ago = time.time() - 3600
    for path in copies(tmp_path / "a"):
        os.utime(path, (an_hour_ago, an_hour_ago))
    assert hosts.run("a", "publish").code == 0
    assert not copies(tmp_path / "a")
    asked = hosts.run("a", "query", "SELECT count(*) FROM turn_results", "--format", "csv")
    assert asked.out.split()[-1] == "0", asked.text

    paid = charged(model)
    assert hosts.run("a", *RUN).code == 0
    assert charged(model).total() == 2 * paid.total(), "a purged response was found again"
