"""Notifications: one for each run that failed or has a failed check, and what a webhook is sent."""

import logging
from typing import Any
from uuid import uuid4

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.analysis.comparisons.verdicts import SIDE_BY_SIDE
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.system.interrupts import handlers_kept
from eval_pipeline.defs.assets.describe import check_result
from eval_pipeline.defs.assets.partitions import DIMENSION, EVAL_DATE
from eval_pipeline.defs.automation import notifications
from eval_pipeline.defs.automation.notifications import (
    LONGEST_SENTENCE,
    NOTIFY_URL,
    UI_URL,
    Notice,
    errors_of,
    escaped,
    message,
    notify,
    post,
)
from eval_pipeline.reports.nights.message import HOW_TO_SEE
from eval_pipeline.stages.checks import readable
from eval_pipeline.stages.checks.verdicts import CheckVerdict
from eval_pipeline_tests.defs.runs import ASKING, SCORING, TAGS, materialise, run_of
from eval_pipeline_tests.fakes.webhook import HANG, RESET, Webhook
from eval_pipeline_tests.gold_home import override
from eval_pipeline_tests.support import BROKEN, Lab, Puppet, number

pytestmark = pytest.mark.usefixtures("at_once")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "PAUSES_SECONDS", (0.0, 0.0))
    monkeypatch.setattr(notifications, "TIMEOUT_SECONDS", 0.5)
    for name in (NOTIFY_URL, UI_URL):
        monkeypatch.delenv(name, raising=False)


def budgeted(small: Lab, usd: float = 1e-9) -> None:
    price = {"input": 1, "output": 1}
    small.versions({"name": "puppet", "provider": "puppet", "price": price, "max_cost_usd": usd})


def broken(small: Lab) -> None:
    (small.home.data / "suites" / "small" / "cases" / "beta.yaml").write_text("id: beta\n")


def test_a_failed_run_is_told_of_once_with_what_went_wrong(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(small)
    run = run_of(instance, materialise(small, instance, only=ASKING).run_id)
    with Webhook() as webhook:
        monkeypatch.setenv(NOTIFY_URL, webhook.url + "/services/secret")
        monkeypatch.setenv(UI_URL, "http://here:3000/")
        for _ in range(2):
            notify(instance, run, "not needed")
    (sent,) = webhook.posted
    assert sent.keys() == {"text"}
    first, error, link = sent["text"].splitlines()
    assert first == "eval-pipeline: test puppet 2026-03-01 failed"
    assert error.startswith("• small: ")
    assert "small/cases/beta.yaml:1: turns: is missing" in error
    assert link == f"http://here:3000/runs/{run.run_id}"


def test_a_failed_check_of_a_run_that_went_through_is_told_of(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    budgeted(small)
    run = run_of(instance, materialise(small, instance, only=[*SCORING, "small/coverage"]).run_id)
    assert run.status == dg.DagsterRunStatus.SUCCESS
    with Webhook() as webhook:
        monkeypatch.setenv(NOTIFY_URL, webhook.url)
        notify(instance, run)
    (sent,) = webhook.posted
    assert "has failed checks" in sent["text"]
    assert "• small: check budget_kept: the budget of the run is too small for one call" in sent["text"]
    told = "small: 0 of 2 cases; planned 3 · asked 0 · answered 0 · readable 0 · scored 0"
    assert told in sent["text"].splitlines(), "how far the turns got is told too"


def test_overridden_gold_is_told_with_the_figures_without(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    override(small, {"turn": "alpha#1", "action": "corrected", "gold": {"program": "add(50, 8)", "answer": 58.0}})
    said = {"alpha#1": number(58), "beta#0": BROKEN}
    Puppet.answer = staticmethod(lambda call: said.get(f"{call.case_id}#{call.turn_index}") or call.gold.oracle())
    small.versions({"name": "puppet", "provider": "puppet", "max_recovery_attempts": 0})
    monkeypatch.setattr(readable, "FAIL_BELOW", 0.9)
    result = materialise(small, instance)
    run = run_of(instance, result.run_id)
    with Webhook() as webhook:
        monkeypatch.setenv(NOTIFY_URL, webhook.url)
        notify(instance, run)
    (sent,) = webhook.posted
    told = "small: the gold of 1 turn is overridden: accuracy 67% with, 33% without"
    assert told in sent["text"].splitlines()
    shown = {
        event.asset_key.path[-1]: event.step_materialization_data.materialization.metadata
        for event in result.get_asset_materialization_events()
    }
    for asset in ("turn_metrics", "statistics", "trends", "gold_editions"):
        assert str(shown[asset]["gold"].value).endswith("is overridden; gold_editions has the figures without"), asset
    assert "gold" not in shown["generations"]
    table = str(shown["gold_editions"]["table"].value)
    assert "| scored |" in table and "| published |" in table


@pytest.mark.always
def test_a_run_without_failures_is_not_told_of_nor_are_warnings(
    small: Lab, instance: dg.DagsterInstance, caplog: pytest.LogCaptureFixture
) -> None:
    wrong_gold = {"id": "gamma", "turns": [{"question": "?", "program": "add(1, 1)", "answer": 3.0}]}
    document = {"pre_text": "", "table": [["a", "b"], ["c", "1"]], "post_text": ""}
    small.suite(cases=[{**wrong_gold, "document": document}])
    result = materialise(small, instance, only=SCORING)
    checks = {check.check_name: check.passed for check in result.get_asset_check_evaluations()}
    assert checks["gold_holds"] is False
    notify(instance, run_of(instance, result.run_id))
    assert [found for found in caplog.records if found.name == notifications.__name__] == []


def test_without_a_webhook_the_log_says_it_once(
    small: Lab, instance: dg.DagsterInstance, caplog: pytest.LogCaptureFixture
) -> None:
    broken(small)
    run = run_of(instance, materialise(small, instance, only=ASKING).run_id)
    for _ in range(2):
        notify(instance, run)
    (record,) = [found for found in caplog.records if found.name == notifications.__name__]
    assert record.levelno == logging.ERROR
    assert "failed" in record.getMessage()
    assert run.run_id in record.getMessage()


def test_a_reexecution_with_the_tags_of_its_parent_is_told_of_too(
    small: Lab, instance: dg.DagsterInstance, caplog: pytest.LogCaptureFixture
) -> None:
    budgeted(small)
    first = run_of(instance, materialise(small, instance, only=SCORING).run_id)
    notify(instance, first)
    tags = run_of(instance, first.run_id).tags
    again = run_of(instance, materialise(small, instance, launched=tags, only=SCORING).run_id)
    notify(instance, again)
    told = [record.getMessage() for record in caplog.records if record.name == notifications.__name__]
    assert [first.run_id in told[0], again.run_id in told[1]] == [True, True]


def test_a_run_whose_process_is_gone_is_told_of_with_that(
    instance: dg.DagsterInstance, caplog: pytest.LogCaptureFixture
) -> None:
    run = dg.DagsterRun("all_suites", str(uuid4()), status=dg.DagsterRunStatus.STARTED)
    instance.add_run(run)
    event = instance.report_run_failed(run, "The process of this run is gone.")
    context = dg.build_run_status_sensor_context("notify_failed_run", event, instance, run_of(instance, run.run_id))
    notifications.notify_failed_run(context.for_run_failure())
    (told,) = [record.getMessage() for record in caplog.records if record.name == notifications.__name__]
    assert "The process of this run is gone." in told


@pytest.mark.parametrize("failures", [[500, 503], [RESET, 429], [HANG]])
def test_what_may_pass_is_tried_again(failures: list[int]) -> None:
    with Webhook(failures) as webhook:
        post(webhook.url, "text")
    assert webhook.posted == [{"text": "text"}] * (len(failures) + 1)


@pytest.mark.parametrize(("script", "tries", "why"), [([404], 1, "refused with 404"), ([500] * 9, 3, "with 500")])
def test_what_cannot_be_delivered_is_logged_and_told_without_the_address(
    script: list[int], tries: int, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Webhook(script) as webhook:
        with pytest.raises(EvalError, match=why) as found:
            post(f"{webhook.url}/secret", "what went wrong")
        assert webhook.url not in str(found.value)
    assert len(webhook.posted) == tries
    assert "what went wrong" in caplog.text
    assert "secret" not in caplog.text


def test_an_address_that_is_none_is_an_error_in_one_sentence() -> None:
    for url in ("nowhere", "ftp://example.org", "http://"):
        with pytest.raises(EvalError, match=NOTIFY_URL):
            post(url, "text")


def test_a_failure_to_deliver_leaves_the_run_untold(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(small)
    run = run_of(instance, materialise(small, instance, only=ASKING).run_id)
    with Webhook([400]) as webhook:
        monkeypatch.setenv(NOTIFY_URL, webhook.url)
        with pytest.raises(EvalError):
            notify(instance, run)
        notify(instance, run)
    assert len(webhook.posted) == 2


def test_a_long_list_is_cut(instance: dg.DagsterInstance) -> None:
    advice = "`eval-pipeline acknowledge --suite small --model-version a --why …` ends this"
    told = [Notice(f"small: {'x' * 1000} {i}; {advice}", of_suite=False) for i in range(14)]
    lines = message(dg.DagsterRun("job", "r"), told).splitlines()
    assert len(lines) == 13
    assert all(len(line) <= LONGEST_SENTENCE + 2 for line in lines)
    assert all(line.endswith(advice) for line in lines[1:11]), "what to do is not what is cut"
    assert lines[-2:] == ["… and 4 more", "run r"]


@pytest.mark.parametrize(
    ("job", "failed", "of_suite", "subject"),
    [
        ("all_suites", False, True, "small 2026-03-01 has failed checks"),  # the loss is another's than the run's
        ("all_suites", False, False, "all_suites strong 2026-03-01 has failed checks"),
        ("__ASSET_JOB", True, False, "run of strong 2026-03-01 failed"),
        ("suite_small", True, True, "suite_small strong 2026-03-01 failed"),
    ],
)
def test_a_message_names_what_it_is_about(job: str, failed: bool, of_suite: bool, subject: str) -> None:
    status = dg.DagsterRunStatus.FAILURE if failed else dg.DagsterRunStatus.SUCCESS
    tags = {"dagster/partition": "strong", EVAL_DATE: "2026-03-01"}
    notice = Notice("small: check no_significant_loss: weak: −20 points", of_suite)
    (first, *_) = message(dg.DagsterRun(job, "r", status=status, tags=tags), [notice]).splitlines()
    assert first == f"eval-pipeline: {subject}"


def test_a_loss_is_linked_to_side_by_side(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the check of losses says is in the message; how to see it where nobody has said where the workbench is."""
    path = "/suites/small/compare?versions=puppet,puppet&eval_dates=2026-03-01,2026-03-02"

    spec = dg.AssetCheckSpec("no_loss", asset=dg.AssetKey(["small", "trends"]))

    @dg.asset(key=["small", "trends"], check_specs=[spec])
    def trends() -> dg.MaterializeResult:
        verdict = CheckVerdict(False, "puppet: -38.7 points", {SIDE_BY_SIDE: [path]})
        return dg.MaterializeResult(check_results=[check_result("no_loss", verdict)])

    with handlers_kept():
        result = dg.materialize([trends], instance=instance)
    run = run_of(instance, result.run_id)
    said = f"side by side: https://evals.example.org{path}"
    for url, shown in (("", HOW_TO_SEE), ("https://evals.example.org", said)):
        monkeypatch.setenv("EVAL_VIEW_URL", url)
        assert shown in message(run, errors_of(instance, run.run_id)).splitlines()
    with Webhook() as webhook:
        monkeypatch.setenv(NOTIFY_URL, webhook.url)
        notify(instance, run)
    assert f"side by side: https://evals.example.org{path}".replace("&", "&amp;") in webhook.posted[0]["text"]


@given(st.text())
def test_what_a_model_wrote_is_no_command_to_the_channel(text: str) -> None:
    import html

    assert not {"<", ">"} & set(escaped(text))
    assert html.unescape(escaped(text)) == html.unescape(text.replace("&", "&amp;"))


def test_the_sensors_are_on_by_default() -> None:
    found: list[Any] = [notifications.notify_failed_run, notifications.notify_failed_check]
    assert {sensor.default_status for sensor in found} == {dg.DefaultSensorStatus.RUNNING}


def test_what_is_wrong_with_a_suite_is_told_once_for_all_runs_of_a_night(
    small: Lab, instance: dg.DagsterInstance, caplog: pytest.LogCaptureFixture
) -> None:
    def told(version: str, backfill: str = "") -> list[str]:
        caplog.clear()
        launched = TAGS | ({"dagster/backfill": backfill} if backfill else {})
        run_id = materialise(small, instance, launched=launched, partition_key=version, only=SCORING).run_id
        notify(instance, run_of(instance, run_id))
        return [record.getMessage() for record in caplog.records if record.name == notifications.__name__]

    small.versions({"name": "puppet", "provider": "puppet"}, {"name": "second", "provider": "puppet"})
    instance.add_dynamic_partitions(DIMENSION, ["second"])
    assert told("puppet") == []
    broken(small)
    assert len(told("puppet")) == 1
    assert told("second") == []
    assert len(told("puppet", "two")) == 1
    assert told("second", "two") == []


def test_what_is_wrong_with_model_versions_is_told_for_each_of_them(
    small: Lab, instance: dg.DagsterInstance, caplog: pytest.LogCaptureFixture
) -> None:
    entry = {"provider": "puppet", "price": {"input": 1, "output": 1}, "max_cost_usd": 1e-9}
    small.versions(*[{"name": name, **entry} for name in ("puppet", "second")])
    instance.add_dynamic_partitions(DIMENSION, ["second"])
    for name in ("puppet", "second"):
        notify(instance, run_of(instance, materialise(small, instance, partition_key=name, only=SCORING).run_id))
    told = [record.getMessage() for record in caplog.records if record.name == notifications.__name__]
    assert len(told) == 2
    assert told[0].splitlines()[1] == told[1].splitlines()[1]
