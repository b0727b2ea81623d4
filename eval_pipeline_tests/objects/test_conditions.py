"""What `doctor` says of stores that do not honour conditional writes."""

import pytest

from eval_pipeline.core.bucket_address import BucketAddress
from eval_pipeline.core.errors import StoreError
from eval_pipeline.objects.bucket import Bucket
from eval_pipeline.objects.conditions import broken_condition
from eval_pipeline_tests.fakes.bucket_server import BucketServer

pytestmark = pytest.mark.services("bucket")


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
