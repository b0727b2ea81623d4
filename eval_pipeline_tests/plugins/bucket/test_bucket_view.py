"""The workbench on a home in a bucket: its pages show what any host has published, within seconds."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from eval_pipeline.core.home import Home
from eval_pipeline.core.system.bucket_address import BucketAddress
from eval_pipeline.store.published.publish import publish
from eval_pipeline.view import published
from eval_pipeline.view.page import Bench
from eval_pipeline.view.serving import application
from eval_pipeline.web.guard import Door
from eval_pipeline.workspace.tabled.track_tables import further_tables
from eval_pipeline_tests.fakes.bucket_server import BucketServer
from eval_pipeline_tests.plugins.bucket.stores import Host, few
from eval_pipeline_tests.store.samples import put_suite

pytestmark = pytest.mark.services("bucket")
PORT = 3100


def test_pages_show_what_another_host_publishes_after_the_next_look(
    address: BucketAddress, server: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, home = Host(tmp_path / "a", address), Home(tmp_path / "b", tmp_path / "data", address)
    other.folder.mkdir()

    def publishes(model: str) -> None:
        few(other.record, model)
        publish(other.record, other.out, further_tables())

    monkeypatch.setattr(published, "_REFRESH_S", 3600.0)
    put_suite(other.record)
    publishes("alpha")
    with Bench.of(home) as bench:
        client = TestClient(application(bench, Door(PORT, None, forms=True)), base_url=f"http://127.0.0.1:{PORT}")

        def shown() -> list[bool]:
            page = client.get("/")
            assert page.status_code == 200, page.text
            return [name in page.text for name in ("alpha", "beta")]

        assert shown() == [True, False]
        publishes("beta")
        begin = len(server.log)
        assert shown() == [True, False]
        assert len(server.log) == begin, "pages between two looks ask the bucket nothing"
        monkeypatch.setattr(published, "_REFRESH_S", 0.0)
        assert shown() == [True, True]
