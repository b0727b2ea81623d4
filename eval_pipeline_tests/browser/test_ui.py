"""The UI as people use it: a real webserver and daemon, a real browser; backfill, schedule, notification, checks.

One test, since starting everything takes longest. Screenshots are kept in `EVAL_SCREENSHOTS`, if that is set.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from eval_pipeline.defs.automation.notifications import NOTIFY_URL
from eval_pipeline.defs.automation.schedules import CRON
from eval_pipeline_tests.browser.attacker import (
    FOREIGN,
    what_a_foreign_name_gets,
    what_other_pages_get,
    what_scripts_without_the_token_get,
)
from eval_pipeline_tests.browser.ui import UI, eventually, running_ui
from eval_pipeline_tests.fakes.webhook import Webhook
from eval_pipeline_tests.reader import Reader
from eval_pipeline_tests.reports.browser import chromium, picture
from eval_pipeline_tests.support import TWO_CASES, Lab

SUITES = ("harbour", "lighthouse")
CHAIN = (
    "raw_dataset cases generations recovery_attempts evidence turn_metrics statistics accuracy_by_complexity "
    "cost_per_correct_answer complexity_ceiling error_analysis published report"
).split()
COMPARING = ("model_comparisons", "trends", "gold_suspects", "reviews", "comparison_published", "comparison_report")
BACKFILLED = ("model-a", "model-b")
NIGHTLY = "nightly-model"
BAD_TAGS = {"dagster/partition": "model-a", "eval_pipeline/scope": "nonsense"}
OF_SCHEDULE = {"dagster/schedule_name": "nightly"}
PAGE_MS = 300_000
LAUNCH = """mutation($tags: [ExecutionTag!]!) { launchRun(executionParams: { selector: { repositoryLocationName:
  "eval_pipeline", repositoryName: "__repository__", jobName: "suite_lighthouse" }, runConfigData: {},
  executionMetadata: { tags: $tags } }) { __typename } }"""

PARTITIONS = """query($path: [String!]!) { assetNodeOrError(assetKey: {path: $path}) { ... on AssetNode { partitionKeys
  partitionStats { numMaterialized numFailed numMaterializing } } } }"""
ADD = """mutation($name: String!) { addDynamicPartition(partitionsDefName: "model_version", partitionKey: $name,
  repositorySelector: { repositoryLocationName: "eval_pipeline", repositoryName: "__repository__" })
  { __typename } }"""
OF_JOB = """{ pipelineOrError(params: { repositoryLocationName: "eval_pipeline", repositoryName: "__repository__",
  pipelineName: "suite_harbour" }) { ... on Pipeline { runs(limit: 10) { runId status startTime endTime tags { key }
  repositoryOrigin { repositoryLocationName } } } } }"""
CHECKS = """query($path: [String!]!) { assetNodeOrError(assetKey: {path: $path}) { ... on AssetNode {
  assetChecksOrError { ... on AssetChecks { checks { name partitionStatuses { ... on
  AssetCheckDefaultPartitionStatuses { succeededPartitions failedPartitions } } } } } } } }"""
STALE = """query($path: [String!]!) { assetNodeOrError(assetKey: {path: $path}) { ... on AssetNode {
  a: staleStatus(partition: "model-a") b: staleStatus(partition: "model-b") } } }"""
STALE_AS_A_WHOLE = """query($path: [String!]!) { assetNodeOrError(assetKey: {path: $path}) { ... on AssetNode {
  staleStatus } } }"""

pytestmark = pytest.mark.services("browser", "ui", longest=True)


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook() as found:
        yield found


@pytest.fixture
def ui(lab: Lab, webhook: Webhook, tmp_path: Path) -> Iterator[UI]:
    """Two tiny suites, model versions for a backfill, and one for the night."""
    lab.suite("harbour")
    lab.suite("lighthouse", [TWO_CASES[0]])
    names = (*BACKFILLED, NIGHTLY)
    lab.versions(
        *[
            {"name": name, "provider": "simulated", "options": {"rates": {}}, "active": name == NIGHTLY}
            for name in names
        ]
    )
    with running_ui(lab, tmp_path / "dev.log", {NOTIFY_URL: webhook.url, CRON: "* * * * *"}) as found:
        yield found


@pytest.fixture
def page() -> Iterator[Page]:
    with chromium(f"--host-resolver-rules=MAP {FOREIGN} 127.0.0.1") as browser:
        found = browser.new_context(viewport={"width": 1800, "height": 1500}).new_page()
        found.set_default_timeout(PAGE_MS)
        expect.set_options(timeout=PAGE_MS)
        yield found


def test_what_people_do_in_the_ui(lab: Lab, ui: UI, webhook: Webhook, page: Page) -> None:
    outside: list[str] = []
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith((ui.url, "data:", f"blob:{ui.url}")) else outside.append(request.url)
        ),
    )
    the_first_page_greets_with_no_dialog(ui, page)
    nobody_looks(page)
    eventually(lambda: partitions(ui)[0] == {NIGHTLY})
    for name in BACKFILLED:  # which are not active: whoever wants one run says so
        assert ui.query(ADD, name=name)["addDynamicPartition"]["__typename"] == "AddDynamicPartitionSuccess"
    nobody_uninvited_runs_anything(ui, page)
    nobody_looks(page)
    with Reader(lab.home.store, every_s=2.0) as reader:
        tags = [{"key": key, "value": value} for key, value in BAD_TAGS.items()]
        assert ui.query(LAUNCH, tags=tags)["launchRun"]["__typename"] == "LaunchRunSuccess"
        what_a_failed_run_left_out_is_compared(ui)
        a_backfill_is_launched_from_the_dialog(ui, page)
        the_schedule_ticks(ui, page)
        every_suite_has_its_chain(ui, page)
        nobody_looks(page)
        the_runs_complete(ui)
    assert reader.wrong == []
    assert reader.looks > 10
    assert {name.split("/")[1] for name in reader.seen} == {*BACKFILLED, NIGHTLY}
    eventually(lambda: failures(webhook), ui.log.read_text)
    partitions_and_checks_are_green(ui, page)
    every_check_has_a_result_a_model_version(ui)
    runs_of_the_command_line_are_seen_with_those_of_their_job(lab, ui, page)
    accuracy_is_a_line_a_model_version(ui, page)
    nobody_looks(page)
    (failure,) = failures(webhook)
    assert "'nonsense' is not a scope" in failure
    assert f"{ui.url}/runs/" in failure
    the_night_is_told_of_once(lab, ui, webhook)
    assert outside == []


def nobody_looks(page: Page) -> None:
    """While one waits: an open page asks and moves all the time, which takes half a processor."""
    page.goto("about:blank")


def failures(webhook: Webhook) -> list[str]:
    """What was posted, without the digest of the night."""
    return [text for post in webhook.posted if "night of" not in (text := post["text"])]


def the_night_is_told_of_once(lab: Lab, ui: UI, webhook: Webhook) -> None:
    """A minute after its last run, by the daemon."""
    eventually(lambda: len(failures(webhook)) < len(webhook.posted), ui.log.read_text)
    (digest,) = [text for post in webhook.posted if "night of" in (text := post["text"])]
    for part in (
        " on 2 suites; 0 new losses",
        "harbour",
        "lighthouse",
        f"  {NIGHTLY} (simulated): ",
        f"{ui.url}/runs",
    ):
        assert part in digest, digest
    for (question,) in lab.sql("SELECT question FROM turns"):
        assert question not in digest
    (night,) = (lab.home.reports / "nights").glob("*.html")
    assert f"page: nights/{night.name} in the reports of the home" in digest


def partitions(ui: UI, asset: str = "harbour/generations") -> tuple[set[str], dict[str, int]]:
    """The partitions of an asset, and how many of them are in which state."""
    node = ui.query(PARTITIONS, path=asset.split("/"))["assetNodeOrError"]
    return set(node["partitionKeys"]), node["partitionStats"]


def the_first_page_greets_with_no_dialog(ui: UI, page: Page) -> None:
    page.goto(f"{ui.url}/?token={ui.token}")
    expect(page.get_by_text("Launch a run")).to_be_visible()
    picture(page, "first-page")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("iframe")).to_have_count(0)


def nobody_uninvited_runs_anything(ui: UI, page: Page) -> None:
    assert what_other_pages_get(ui, page) == {}
    assert what_a_foreign_name_gets(ui, page) == 403
    assert what_scripts_without_the_token_get(ui) == [403, 403, 403, 403]
    assert ui.runs() == []


def every_suite_has_its_chain(ui: UI, page: Page) -> None:
    for suite in SUITES:
        page.goto(f"{ui.url}/locations/eval_pipeline/asset-groups/{suite}/list")
        for name in (*CHAIN, *COMPARING):
            expect(page.get_by_role("link", name=f"{suite} / {name}").first).to_be_visible()
        page.goto(f"{ui.url}/locations/eval_pipeline/asset-groups/{suite}")
        expect(page.get_by_text("turn_metrics", exact=True).first).to_be_visible()
        picture(page, f"chain-{suite}")


def what_a_failed_run_left_out_is_compared(ui: UI) -> None:
    """By `dev` itself, which then tells Dagster, before any other run of the suite."""
    eventually(lambda: [run for run in ui.runs(**BAD_TAGS) if run["status"] == "FAILURE"], ui.log.read_text)
    (run,) = eventually(ui.comparing_runs, ui.log.read_text)
    eventually(lambda: ui.comparing_runs()[0]["status"] == "SUCCESS", ui.log.read_text)
    assert "dagster/partition" not in run["tags"]


def a_backfill_is_launched_from_the_dialog(ui: UI, page: Page) -> None:
    page.goto(f"{ui.url}/locations/eval_pipeline/jobs/all_suites/partitions")
    page.get_by_role("button", name="Materialize").first.click()
    dialog = page.get_by_role("dialog")

    def all_are_chosen() -> bool:  # a click before the partitions are loaded is lost
        dialog.get_by_role("button", name="All", exact=True).click()
        return dialog.get_by_text("3 partitions").is_visible()

    eventually(all_are_chosen)
    dialog.locator(f'[data-tooltip="{NIGHTLY}"]').get_by_label("close").click()
    expect(dialog.get_by_text("2 partitions")).to_be_visible()
    picture(page, "backfill-dialog")
    dialog.get_by_role("button", name="Launch backfill").click()
    eventually(ui.backfills)


def the_schedule_ticks(ui: UI, page: Page) -> None:
    """Switched on, and off again after the first tick: the next one would be a minute later."""
    page.goto(f"{ui.url}/locations/eval_pipeline/schedules/nightly")
    switch = page.get_by_role("checkbox").first
    expect(switch).not_to_be_checked()
    switch.press("Space")
    expect(switch).to_be_checked()
    nobody_looks(page)
    eventually(lambda: ui.runs(**OF_SCHEDULE), ui.log.read_text)
    assert ui.schedule()["status"] == "RUNNING"
    ui.stop_schedule()


def the_runs_complete(ui: UI) -> None:
    """Those of the backfill, those of the schedule, and the one that cannot succeed."""

    def ended() -> bool:
        (backfill,) = ui.backfills()
        night = ui.runs(**OF_SCHEDULE)
        assert backfill["status"] not in {"FAILED", "CANCELED", "COMPLETED_FAILED"}
        assert not [run for run in night if run["status"] in {"FAILURE", "CANCELED"}]
        done = all(run["status"] == "SUCCESS" for run in night)
        return done and backfill["status"] == "COMPLETED_SUCCESS"

    eventually(ended, lambda: f"{ui.backfills()} {ui.runs()}")
    (backfill,) = ui.backfills()
    assert set(backfill["partitionNames"]) == set(BACKFILLED)
    assert len({run["tags"]["eval_pipeline/eval_date"] for run in ui.runs(**{"dagster/backfill": backfill["id"]})}) == 1
    for night in ui.runs(**OF_SCHEDULE):
        assert night["tags"]["dagster/partition"] == NIGHTLY
        assert night["tags"]["eval_pipeline/eval_date"] == night["tags"]["eval_pipeline/epoch"]
    (bad,) = ui.runs(**BAD_TAGS)
    assert bad["status"] == "FAILURE"


def partitions_and_checks_are_green(ui: UI, page: Page) -> None:
    for suite in SUITES:
        for name in CHAIN[2:]:
            stats = {"numMaterialized": 3, "numFailed": 0, "numMaterializing": 0}
            # A second tick may have come before the schedule was stopped.
            eventually(lambda: partitions(ui, f"{suite}/{name}")[1] == stats, lambda: name)  # noqa: B023
        shot(page, f"{ui.url}/locations/eval_pipeline/asset-groups/{suite}", "published", f"{suite}-done")
    shot(page, f"{ui.url}/assets/harbour/turn_metrics?view=partitions", "Materialized (3)", "partitions")
    shot(page, f"{ui.url}/assets/harbour/turn_metrics?view=checks", "Passed", "checks")
    for check in ("every_turn_scored_once", "no_metric_errors", "budget_kept"):
        expect(page.get_by_text(check, exact=True).first).to_be_visible()
    expect(page.get_by_text("Failed", exact=True)).to_have_count(0)
    shot(page, f"{ui.url}/assets/harbour/cases?view=checks", "Passed", "checks-of-cases")
    shot(page, f"{ui.url}/assets/harbour/trends?view=checks", "Passed", "checks-of-trends")
    for check in ("no_significant_loss", "no_drift"):
        expect(page.get_by_text(check, exact=True).first).to_be_visible()
    expect(page.get_by_text("Failed", exact=True)).to_have_count(0)
    shot(page, f"{ui.url}/assets/harbour/comparison_report?view=events", "report.html", "comparison")
    shot(page, f"{ui.url}/assets/harbour/statistics?view=overview", "accuracy_low", "statistics")
    shot(page, f"{ui.url}/assets/harbour/accuracy_by_complexity?view=events", "█", "accuracy")
    shot(page, f"{ui.url}/assets/harbour/report?view=events", "report.xlsx", "report")
    page.get_by_text("[Show Markdown]").click()
    chart = page.get_by_role("dialog").get_by_role("img", name="accuracy by operations", exact=True)
    expect(chart).to_be_visible()
    assert chart.evaluate("image => image.naturalWidth") > 100
    picture(page, "report-charts")
    shot(page, f"{ui.url}/locations/eval_pipeline/schedules/nightly", "nightly", "schedule")
    shot(page, f"{ui.url}/runs", "Succe", "runs")
    shot(page, f"{ui.url}/automation", "notify_failed_run", "automation")


def every_check_has_a_result_a_model_version(ui: UI) -> None:
    node = ui.query(CHECKS, path=["harbour", "turn_metrics"])["assetNodeOrError"]
    found = {check["name"]: check["partitionStatuses"] for check in node["assetChecksOrError"]["checks"]}
    assert "every_turn_scored_once" in found
    for told in found.values():
        assert set(told["succeededPartitions"]) == {*BACKFILLED, NIGHTLY}
        assert told["failedPartitions"] == []


def runs_of_the_command_line_are_seen_with_those_of_their_job(lab: Lab, ui: UI, page: Page) -> None:
    """Four of them; every page shows what it would after a backfill."""
    assert ui.query(OF_JOB)["pipelineOrError"]["runs"] == []
    places = [(suite, name, f"2026-01-{day}") for day in (17,) for name in BACKFILLED for suite in SUITES]
    for suite, name, day in places:
        child = lab.child("run", "--suite", suite, "--model-version", name, "--eval-date", day, "--no-report")
        assert child.returncode == 0, child.stderr
    runs = eventually(lambda: told_of_all(ui, len(places) // len(SUITES)), ui.log.read_text)
    for run in runs:
        assert run["status"] == "SUCCESS"
        assert run["repositoryOrigin"] == {"repositoryLocationName": "eval_pipeline"}, "else the timeline leaves it out"
        keys = {tag["key"] for tag in run["tags"]}
        assert keys == {"dagster/code_location", "dagster/partition", "eval_pipeline/eval_date"}
        assert 0 < run["startTime"] < run["endTime"]
    newest = runs[0]["runId"]
    shot(page, f"{ui.url}/overview", "suite_harbour", "overview")
    shot(page, f"{ui.url}/locations/eval_pipeline/jobs/suite_harbour/runs", newest[:8], "runs-of-job")
    shot(page, f"{ui.url}/runs/{newest}", "Finished execution of run", "told-run")
    expect(page.get_by_text("Succeeded (19)")).to_be_visible()
    # The schedule goes on ticking, for another model version.
    told = f"{ui.url}/assets/harbour/turn_metrics?view=partitions&partition={BACKFILLED[0]}"
    shot(page, told, "2026-01-17", "told-partition")
    expect(page.get_by_text("input_tokens", exact=True).first).to_be_visible()
    shot(page, f"{ui.url}/assets/harbour/turn_metrics?view=checks", "Passed", "told-checks")
    expect(page.get_by_text("Failed", exact=True)).to_have_count(0)
    for name in CHAIN[2:-1]:
        node = ui.query(STALE, path=["harbour", name])["assetNodeOrError"]
        assert {node["a"], node["b"]} == {"FRESH"}, name
        assert partitions(ui, f"harbour/{name}")[1]["numFailed"] == 0
    for name in COMPARING[:-1]:
        assert ui.query(STALE_AS_A_WHOLE, path=["harbour", name])["assetNodeOrError"] == {"staleStatus": "FRESH"}, name


def told_of_all(ui: UI, number: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ui.query(OF_JOB)["pipelineOrError"]["runs"]
    ended = [run for run in found if run["status"] in {"SUCCESS", "FAILURE"}]  # the last is just being told of
    return found if len(ended) == number else []


def accuracy_is_a_line_a_model_version(ui: UI, page: Page) -> None:
    page.goto(f"{ui.url}/assets/harbour/trends?view=overview")
    page.get_by_role("button", name="Plots").click()
    for name in (*BACKFILLED, NIGHTLY):
        expect(page.get_by_text(f"accuracy_{name}", exact=True).first).to_be_visible()
    page.get_by_text(f"accuracy_{NIGHTLY}", exact=True).first.scroll_into_view_if_needed()
    picture(page, "trends-plots")


def shot(page: Page, url: str, text: str, name: str) -> None:
    """Opens a page, waits until it shows the text, and takes its picture."""
    page.goto(url)
    expect(page.get_by_text(text).first).to_be_visible()
    page.wait_for_timeout(1000)  # what comes late: else that nothing failed would be true too early
    picture(page, name)
