"""Tests of homes in a bucket: each begins with an empty bucket."""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from eval_pipeline.core.system.bucket_address import BucketAddress
from eval_pipeline.state.place import DATABASE_URL
from eval_pipeline_plugins.bucket.bucket import Bucket
from eval_pipeline_plugins.postgres import leases
from eval_pipeline_tests.fakes.anthropic_server import KEY as MODEL_KEY
from eval_pipeline_tests.fakes.bucket_server import KEY, SECRET, BucketServer, bucket_server
from eval_pipeline_tests.plugins.bucket.hosts import Hosts
from eval_pipeline_tests.servers import StatePostgres

_serial = count()


@pytest.fixture(scope="session")
def server() -> Iterator[BucketServer]:
    with bucket_server() as found:
        yield found


@pytest.fixture
def address(server: BucketServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[BucketAddress]:
    """An empty bucket, whose endpoint and keys are those of the environment."""
    settings = {"AWS_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    for name, value in (settings | {"AWS_REGION": "us-east-1"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("eval_pipeline.store.catalog.views.commented", lambda *_: ())  # half of what a catalog takes
    found = BucketAddress(f"bucket{next(_serial)}", "team/evals")
    server.client.create_bucket(Bucket=found.bucket)
    server.log.clear()
    yield found
    server.failing, server.careless, server.before = "", "", lambda request: None


@pytest.fixture
def bucket(address: BucketAddress) -> Bucket:
    return Bucket(address)


@pytest.fixture
def hosts(
    state_server: StatePostgres, address: BucketAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Hosts]:
    """Hosts of an empty bucket with a database of its own."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    monkeypatch.setattr("eval_pipeline.suites.cases.rehearse", lambda source: None)
    monkeypatch.setenv("ANTHROPIC_API_KEY", MODEL_KEY)
    monkeypatch.setenv(DATABASE_URL, state_server.new_database())
    yield Hosts(address, tmp_path / "data", tmp_path, monkeypatch)
    for opened in leases._opened.values():
        opened.close()
    leases._opened.clear()
