"""With the real daemon: no loss is silent because other runs fail or are canceled, and only what failed itself is red.

A backfill in which one model version fails and one is canceled, then a night of the schedule in which one fails.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.model import Partition
from eval_pipeline.defs.assets.partitions import EVAL_DATE
from eval_pipeline.defs.automation.notifications import NOTIFY_URL
from eval_pipeline.defs.automation.schedules import CRON
from eval_pipeline.reports.nights.message import night_message
from eval_pipeline.reports.nights.night import Launched, read_night
from eval_pipeline.view.page import Bench
from eval_pipeline.workspace.runs import run_rows
from eval_pipeline_tests.browser.ui import UI, eventually, running_ui
from eval_pipeline_tests.fakes.http_socket import Connection, Request
from eval_pipeline_tests.fakes.openai_server import KEY, Hang, OpenAIServer, Says, Status
from eval_pipeline_tests.fakes.webhook import Webhook
from eval_pipeline_tests.support import Lab, case, number, surroundings
from eval_pipeline_tests.view.pages import let_in

pytestmark = pytest.mark.services("ui")
SUITE, CASES = "harbour", 40
NAMES = LOSING, STEADY, DEAD, SLOW = "losing", "steady", "dead", "slow"
ACTIVE = (LOSING, STEADY, DEAD)
BEFORE = "2026-01-15"
TOLD = "SELECT model_version, compared FROM trends WHERE open_loss_date IS NOT NULL ORDER BY ALL"
ENDED = {"SUCCESS", "FAILURE", "CANCELED"}
BACKFILL = """mutation($keys: [AssetKeyInput!]!, $names: [String!]!) { launchPartitionBackfill(backfillParams: {
  assetSelection: $keys, partitionNames: $names,
  tags: [{ key: "eval_pipeline/epoch", value: "later" }] }) { __typename ... on PythonError { message } } }"""
START = """mutation { startSchedule(scheduleSelector: { repositoryLocationName: "eval_pipeline", repositoryName:
  "__repository__", scheduleName: "nightly" }) { __typename } }"""
OF_SCHEDULE = {"dagster/schedule_name": "nightly"}
END = """mutation($id: String!) { terminateRun(runId: $id) { __typename } }"""
ADD = """mutation($name: String!) { addDynamicPartition(partitionsDefName: "model_version", partitionKey: $name,
  repositorySelector: { repositoryLocationName: "eval_pipeline", repositoryName: "__repository__" })
  { __typename } }"""
NODES = """{ assetNodes { assetKey { path } isPartitioned partitionStats { numMaterialized numFailed numMaterializing }
  assetChecksOrError { ... on AssetChecks { checks { name executionForLatestMaterialization { status } } } } } }"""
LATEST = """query($keys: [AssetKeyInput!]!) { assetsLatestInfo(assetKeys: $keys) { assetKey { path }
  latestRun { id status endTime } latestMaterialization { runId timestamp } } }"""


class Endpoint(OpenAIServer):
    """Answers by the name of the model: all right but for what some of them get worse, are gone, or say nothing."""

    losing = silent = ""

    async def handle(self, request: Request, connection: Connection) -> None:
        if request.path.endswith("/chat/completions"):
            self._script = [self._step(json.loads(request.body))]
        await super().handle(request, connection)

    def _step(self, body: dict[str, Any]) -> Says | Status | Hang:
        model, asked = body["model"], json.dumps(body["messages"])
        if model == DEAD and self.losing:
            return Status(401)
        if model == self.silent:
            return Hang()
        page = next((n for n in range(15) if f"page_{n} " in asked), None)
        # Wrong ones differ: that many equal ones would look like a wrong configuration.
        return Says(number(50.0 if page is None or model != self.losing else 100.0 + 7 * page))


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as found:
        yield found


@pytest.fixture
def lab(lab: Lab, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A suite on which all model versions were right a day before."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    lab.suite(SUITE, [case(f"page_{n}", ("50", 50.0)) for n in range(CASES)])
    options = {"base_url": f"{endpoint.url}/v1"}
    lab.versions(
        *[
            {"name": name, "provider": "openai", "model": name, "options": options, "active": name != SLOW}
            | ({"deadline_s": 20.0} if name == SLOW else {})  # a run that is ended waits for calls on their way
            for name in NAMES
        ]
    )
    with surroundings(lab):
        asked = [part for name in NAMES for part in ("--model-version", name)]
        said = lab.cli("run", "--suite", SUITE, *asked, "--eval-date", BEFORE, "--no-report")
        assert said.code == 0, said.text
    endpoint.bodies.clear()
    return lab


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook() as found:
        yield found


def test_a_loss_is_told_though_others_failed_and_were_canceled(
    lab: Lab, endpoint: Endpoint, webhook: Webhook, tmp_path: Path
) -> None:
    more = {"OPENAI_API_KEY": KEY, NOTIFY_URL: webhook.url, CRON: "* * * * *"}
    with running_ui(lab, tmp_path / "dev.log", more) as ui:
        for name in NAMES:
            ui.query(ADD, name=name)
        of_a_backfill(lab, endpoint, ui)
        of_a_night(lab, endpoint, webhook, ui)


def of_a_backfill(lab: Lab, endpoint: Endpoint, ui: UI) -> None:
    """One model version is gone, and one says nothing until somebody ends its run."""
    endpoint.losing, endpoint.silent = LOSING, SLOW
    keys = [{"path": node["assetKey"]["path"]} for node in ui.query(NODES)["assetNodes"]]
    made = ui.query(BACKFILL, keys=keys, names=list(NAMES))["launchPartitionBackfill"]
    assert made["__typename"] == "LaunchBackfillSuccess", made
    eventually(lambda: states(ui).get(SLOW) == "STARTED" and hangs(endpoint), lambda: str(states(ui)))
    (slow, *_) = ui.runs(**{"dagster/partition": SLOW})
    ui.query(END, id=slow["runId"])
    eventually(lambda: {*states(ui).values()} <= ENDED, lambda: str(states(ui)))
    assert [states(ui)[name] for name in NAMES] == ["SUCCESS", "SUCCESS", "FAILURE", "CANCELED"]
    eventually(lambda: told_everywhere(lab, LOSING), lambda: f"{lab.sql(TOLD)} {ui.log.read_text()}")
    only_what_failed_itself_is_red(ui)
    (day,) = {day for (day,) in lab.sql("SELECT max(eval_date) FROM runs")}
    rows = {name: run_rows(lab.workspace(), Partition(SUITE, name, day), ["status"]) for name in NAMES}
    statuses = {name: found[-1]["status"] for name, found in rows.items()}
    assert statuses == {LOSING: "complete", STEADY: "complete", DEAD: "failed", SLOW: "canceled"}
    launched = [Launched(DEAD, "1", failed=True), Launched(SLOW, "2", canceled=True)]
    text = night_message(read_night(lab.workspace().record, day, launched))
    assert "1 new loss, 0 still open; 1 run failed; 1 run canceled" in text
    assert re.search(rf"• new loss: {SUITE} · {LOSING}: −3[78][.\d]* points against {BEFORE}", text), text


def of_a_night(lab: Lab, endpoint: Endpoint, webhook: Webhook, ui: UI) -> None:
    """A tick of the schedule: one is gone, and another one gets worse than the one that the backfill told."""
    endpoint.losing = STEADY
    assert ui.query(START)["startSchedule"]["__typename"] == "ScheduleStateResult"
    eventually(lambda: night(ui).keys() == {*ACTIVE}, lambda: str(ui.runs()))
    ui.stop_schedule()
    eventually(lambda: {*night(ui).values()} <= ENDED, lambda: str(ui.runs()))
    assert [night(ui)[name] for name in ACTIVE] == ["SUCCESS", "SUCCESS", "FAILURE"]
    eventually(lambda: told_everywhere(lab, STEADY), lambda: f"{lab.sql(TOLD)} {ui.log.read_text()}")
    only_what_failed_itself_is_red(ui)
    digest = eventually(lambda: next(digests(webhook), None), ui.log.read_text)
    assert "1 new loss, 0 still open; 1 run failed" in digest
    assert re.search(rf"^• new loss: {SUITE} · {STEADY}: −3[78][.\d]* points against {BEFORE}", digest, re.MULTILINE)
    assert re.search(rf"^• the run of {DEAD} failed: {ui.url}/runs/", digest, re.MULTILINE), digest
    assert not any(f"loss: {SUITE} · {name}" in digest for name in NAMES if name != STEADY), digest


def night(ui: UI) -> dict[str, str]:
    """Status of the runs of the first night, by model version: one each, though the schedule may tick again."""
    runs = ui.runs(**OF_SCHEDULE)
    first = min((run["tags"][EVAL_DATE] for run in runs), default="")
    runs = [run for run in runs if run["tags"][EVAL_DATE] == first]
    found = {run["tags"]["dagster/partition"]: run["status"] for run in runs}
    assert len(found) == len(runs)
    return found


def digests(webhook: Webhook) -> Iterator[str]:
    return (text for post in webhook.posted if "night of" in (text := post["text"]))


def states(ui: UI) -> dict[str, str]:
    """Status of the last run of each model version."""
    return {run["tags"].get("dagster/partition", ""): run["status"] for run in reversed(ui.runs())}


def hangs(endpoint: Endpoint) -> bool:
    return any(body["model"] == SLOW for body in endpoint.bodies)


def told_everywhere(lab: Lab, losing: str) -> bool:
    """Whether this loss, and nothing false, is in the store, on the home page and in `doctor`."""
    if lab.sql(TOLD) != [(losing, True)] or lab.sql("SELECT 1 FROM trends WHERE NOT compared"):
        return False
    with surroundings(lab), Bench.of(lab.home) as bench:
        page, said = let_in(bench).get("/").text, lab.cli("doctor").text
    assert re.search(rf"<li>Loss: <a[^>]*>−3[78][^<]* points</a> {losing} on {SUITE}", page), page
    found = [line.split(":")[1].strip() for line in said.splitlines() if line.startswith("FAIL loss")]
    assert found == [f"{SUITE} · {losing}"], said
    assert not [line for line in said.splitlines() if line.startswith("FAIL store")], said
    return True


def only_what_failed_itself_is_red(ui: UI) -> None:
    # What a run planned is withdrawn after it has ended; until then Dagster shows it as failed.
    eventually(lambda: failed(ui) == {"generations": 1}, lambda: str(failed(ui)))
    nodes = ui.query(NODES)["assetNodes"]
    latest = ui.query(LATEST, keys=[{"path": node["assetKey"]["path"]} for node in nodes if not node["isPartitioned"]])
    for one in latest["assetsLatestInfo"]:
        assert one["latestMaterialization"], one
        assert not is_red(one["latestRun"], one["latestMaterialization"]), one
    checks = [check for node in nodes for check in node["assetChecksOrError"].get("checks", ())]
    told = {check["name"]: (check["executionForLatestMaterialization"] or {}).get("status") for check in checks}
    assert {name for name, status in told.items() if status not in {"SUCCEEDED", None}} == {"no_significant_loss"}, told


def failed(ui: UI) -> dict[str, int]:
    """Number of partitions that the UI shows as failed, by asset; none without any."""
    nodes = (node for node in ui.query(NODES)["assetNodes"] if node["isPartitioned"])
    counts = {node["assetKey"]["path"][-1]: node["partitionStats"]["numFailed"] for node in nodes}
    return {name: count for name, count in counts.items() if count}


def is_red(run: Mapping[str, Any] | None, made: Mapping[str, Any]) -> bool:
    """Whether the UI shows an asset without partitions as failed: its last run failed later, without making it."""
    if run is None or run["status"] != "FAILURE" or run["id"] == made["runId"]:
        return False
    return not run["endTime"] or 1000 * run["endTime"] > float(made["timestamp"])
