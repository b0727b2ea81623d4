"""`eval-pipeline dev` of two hosts on a home in a bucket: webserver, daemon, sensors and the nightly schedule."""

from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.view.page import Bench
from eval_pipeline_tests.browser.ui import eventually, running_ui
from eval_pipeline_tests.fakes.anthropic_server import AnthropicServer
from eval_pipeline_tests.plugins.bucket.hosts import Hosts
from eval_pipeline_tests.plugins.bucket.test_importing import answers, capitals
from eval_pipeline_tests.remote import VERSION, charged, prepare
from eval_pipeline_tests.remote import answers as of_model
from eval_pipeline_tests.support import Lab

pytestmark = pytest.mark.services("postgres", "bucket", "ui")
OTHER = "another host with this database runs the daemon; this one serves only the UI"
REGISTERED = """{ assetNodes { partitionKeys } }"""


@pytest.mark.soak
def test_a_night_is_evaluated_by_one_of_two_hosts_and_seen_by_both(
    hosts: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def settings(name: str) -> dict[str, str]:
        return {"EVAL_HOME": str(hosts.address), "EVAL_SCRATCH": str(hosts.folder / name)}

    with AnthropicServer(of_model) as model:
        prepare(Lab.at(tmp_path), model, conversations=1)
        night = {"EVAL_NIGHTLY": "1", "EVAL_NIGHTLY_CRON": "* * * * *"}
        at_a = hosts.use("a")
        with running_ui(at_a, tmp_path / "a.log", settings("a") | night) as ui_a:
            at_b = hosts.use("b")
            with running_ui(at_b, tmp_path / "b.log", settings("b")) as ui_b:
                eventually(lambda: OTHER in ui_b.log.read_text(), ui_b.log.read_text)
                # What is imported on the host without a daemon is registered by the daemon of the other.
                assert hosts.run("b", "import", "text", capitals(tmp_path / "x.csv"), "--suite", "capitals").code == 0
                mine = ("--suite", "capitals", "--model-version", "mine")
                said = hosts.run("b", "import", "predictions", answers(tmp_path / "p.jsonl", "Paris", "Rome"), *mine)
                assert said.code == 0, said.text

                def registered() -> bool:
                    nodes: list[dict[str, Any]] = ui_b.query(REGISTERED)["assetNodes"]
                    return any("mine" in node["partitionKeys"] for node in nodes)

                eventually(registered, ui_a.log.read_text)
                of_night = {"dagster/schedule_name": "nightly", "dagster/partition": VERSION}
                eventually(
                    lambda: any(run["status"] == "SUCCESS" for run in ui_b.runs(**of_night)),
                    lambda: str(ui_b.runs()) + ui_a.log.read_text(),
                )
                with Bench.of(hosts.use("b").home) as bench, bench.published.look() as look:
                    row = look.row(f"SELECT count(*) AS n FROM turn_results WHERE model_version = '{VERSION}'")
                assert row is not None and row["n"] >= 4
                assert set(charged(model).values()) == {1}
