"""Tests of homes in a bucket: each begins with an empty bucket."""

from collections.abc import Iterator
from itertools import count

import pytest

from eval_pipeline.core.bucket_address import BucketAddress
from eval_pipeline.objects.bucket import Bucket
from eval_pipeline_tests.fakes.bucket_server import KEY, SECRET, BucketServer, bucket_server

_serial = count()


@pytest.fixture(scope="module")
def server() -> Iterator[BucketServer]:
    with bucket_server() as found:
        yield found


@pytest.fixture
def address(server: BucketServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[BucketAddress]:
    """An empty bucket, whose endpoint and keys are those of the environment."""
    settings = {"AWS_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    for name, value in (settings | {"AWS_REGION": "us-east-1"}).items():
        monkeypatch.setenv(name, value)
    found = BucketAddress(f"bucket{next(_serial)}", "team/evals")
    server.client.create_bucket(Bucket=found.bucket)
    server.log.clear()
    yield found
    server.failing, server.before = "", lambda request: None


@pytest.fixture
def bucket(address: BucketAddress) -> Bucket:
    return Bucket(address)
