"""The morning digest: once for each night that is over, by a webhook on a real socket."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.tags import SCHEDULE_NAME_TAG

from eval_pipeline.core.covering.cost_limit import MAX_COST
from eval_pipeline.core.errors import EvalError
from eval_pipeline.defs.assets.partitions import DIMENSION, EVAL_DATE
from eval_pipeline.defs.automation import digests, notifications
from eval_pipeline.defs.automation.digests import morning_digest, send_digest
from eval_pipeline.defs.automation.notifications import NOTIFY_FORM, NOTIFY_URL, UI_URL, post
from eval_pipeline.defs.running.instance import open_instance
from eval_pipeline_tests.defs.runs import ASKING, SCORING, TAGS, materialise, run_of
from eval_pipeline_tests.fakes.webhook import Webhook
from eval_pipeline_tests.support import DAY, Lab, Puppet, number, response

OF_NIGHT = {**TAGS, SCHEDULE_NAME_TAG: "nightly"}
SECRET = "the-model-said-this"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "QUIET_SECONDS", 0)
    monkeypatch.setattr(notifications, "PAUSES_SECONDS", (0.0, 0.0))
    for name in (NOTIFY_URL, UI_URL, NOTIFY_FORM):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def lab_folder(same_folder: Path) -> Path:
    return same_folder


@pytest.fixture
def night(small: Lab, module_folder: Path) -> Iterator[dg.DagsterInstance]:
    """The instance after a night."""

    def make(lab: Lab) -> None:
        with open_instance(lab.home) as found:
            found.add_dynamic_partitions(DIMENSION, ["puppet"])
            materialise(lab, found, launched=OF_NIGHT, only=SCORING)

    small.made_once(module_folder / "night", make)
    with open_instance(small.home) as found:
        yield found


def tick(instance: dg.DagsterInstance, cursor: str | None = None) -> tuple[str, str | None]:
    """What the sensor says, and its cursor afterwards."""
    with dg.build_sensor_context(instance, cursor=cursor) as context:
        said = morning_digest(context)
        assert isinstance(said, dg.SkipReason)
        return said.skip_message or "", context.cursor


def test_a_night_is_told_of_once_when_it_is_over(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    Puppet.answer = staticmethod(lambda call: number(SECRET if call.turn_index == 0 else 1))
    assert tick(instance) == ("there has been no night yet", None)
    materialise(small, instance, launched=TAGS, only=ASKING)
    assert tick(instance)[0] == "there has been no night yet", "what somebody has launched is no night"
    materialise(small, instance, launched=OF_NIGHT)
    with Webhook() as webhook:
        monkeypatch.setenv(NOTIFY_URL, webhook.url + "/services/secret")
        monkeypatch.setenv(UI_URL, "http://here:3000")
        monkeypatch.setenv(MAX_COST, "5")
        monkeypatch.setattr(digests, "QUIET_SECONDS", 3600)
        assert "has just ended" in tick(instance)[0]
        monkeypatch.setattr(digests, "QUIET_SECONDS", 0)
        said, cursor = tick(instance)
        assert (said, cursor) == (f"told of the night of {DAY}", DAY.isoformat())
        assert tick(instance, cursor) == (f"the night of {DAY} has been told of", cursor)
    (sent,) = webhook.posted
    page = small.home.reports / "nights" / f"{DAY}.html"
    assert sent["text"].startswith(f"eval-pipeline: night of {DAY}: 1 model version on 1 suite; 0 new losses")
    assert sent["text"].splitlines()[0].endswith("; limit: $0.00 of $5.00")
    assert sent["text"].splitlines()[-2:] == [
        f"page: nights/{DAY}.html in the reports of the home",
        "runs: http://here:3000/runs",
    ]
    assert str(small.home.root) not in sent["text"], "a message names no place on a disk"
    assert "puppet" in page.read_text()
    said_in_suite = [row[0] for row in small.sql("SELECT question FROM turns")]
    for text in (SECRET, *said_in_suite):
        assert text not in sent["text"]
        assert text not in page.read_text(), "neither prompts nor responses nor gold"


def test_runs_under_way_are_waited_for_and_a_failed_one_is_told(
    small: Lab, night: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    tags = {**OF_NIGHT, "dagster/partition": "slow"}
    night.add_run(dg.DagsterRun("all_suites", "slow-run", status=dg.DagsterRunStatus.STARTED, tags=tags))
    assert tick(night)[0].startswith(f"runs of the night of {DAY} are under way")
    night.report_run_failed(run_of(night, "slow-run"), "gone")
    with Webhook([500, 500, 500]) as webhook:
        monkeypatch.setenv(NOTIFY_URL, webhook.url)
        monkeypatch.setenv(NOTIFY_FORM, "plain")
        said, cursor = tick(night)
        assert "was refused with 500" in said
        assert tick(night, cursor)[1] == DAY.isoformat(), "what could not be delivered is sent by the next tick"
    assert isinstance(webhook.posted[-1], str)
    assert "• the run of slow failed: run slow-run" in webhook.posted[-1].splitlines()


def test_an_older_night_than_the_last_is_not_told_again(small: Lab, night: dg.DagsterInstance) -> None:
    later = (DAY + dt.timedelta(days=1)).isoformat()
    assert tick(night, later) == (f"the night of {DAY} has been told of", later)


@pytest.mark.always
def test_a_webhook_that_never_takes_it_is_given_up(
    small: Lab, night: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Webhook([404] * 50) as webhook:
        monkeypatch.setenv(NOTIFY_URL, webhook.url)
        cursor, ticks = None, 0
        while cursor != DAY.isoformat():
            said, cursor = tick(night, cursor)
            assert "was not taken" in said
            ticks += 1
        assert ticks == digests.MOST_TRIES
        assert tick(night, cursor)[0] == f"the night of {DAY} has been told of"
    assert (small.home.reports / "nights" / f"{DAY}.html").is_file()


def test_a_night_with_a_run_that_hangs_is_told_with_the_next(small: Lab, night: dg.DagsterInstance) -> None:
    before, later = (DAY - dt.timedelta(days=1)).isoformat(), (DAY + dt.timedelta(days=1)).isoformat()
    tags = {**OF_NIGHT, "dagster/partition": "slow"}
    night.add_run(dg.DagsterRun("all_suites", "slow-run", status=dg.DagsterRunStatus.STARTED, tags=tags))
    assert "under way" in tick(night, before)[0]
    materialise(small, night, launched=OF_NIGHT | {EVAL_DATE: later}, only=SCORING)
    assert tick(night, before) == (f"told of the night of {DAY}", DAY.isoformat())
    assert tick(night, DAY.isoformat()) == (f"told of the night of {later}", later)


@pytest.mark.parametrize(("form", "sent"), [("slack", {"text": "a &lt;b&gt; &amp;"}), ("plain", "a <b> &")])
def test_the_forms_of_a_message(form: str, sent: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NOTIFY_FORM, form)
    with Webhook() as webhook:
        post(webhook.url, "a <b> &")
    assert webhook.posted == [sent]


def test_a_form_that_is_none_is_an_error_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NOTIFY_FORM, "teams")
    with pytest.raises(EvalError, match="EVAL_NOTIFY_FORM is 'teams'; it has to be one of slack, plain"):
        post("http://127.0.0.1:9", "text")


def test_the_runs_of_a_night_share_its_limit_and_the_message_tells_what_was_not_asked(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {"provider": "puppet", "max_tokens": 100, "price": {"input": 10, "output": 10, "cache_write": 10}}
    small.versions(*({"name": name, "model": name} | entry for name in ("first", "second")))
    Puppet.answer = staticmethod(lambda call: response(call.gold.oracle(), 120, 30))
    instance.add_dynamic_partitions(DIMENSION, ["first", "second"])
    monkeypatch.setenv(MAX_COST, "0.036")  # an answer costs 0.0015, and reserves about 0.03
    limits = []
    for name in ("first", "second"):
        done = materialise(small, instance, launched=OF_NIGHT, partition_key=name, only=ASKING)
        (told,) = done.asset_materializations_for_node("small__generations")
        limits.append((told.metadata["limit_usd"].value, told.metadata["limit_spent_usd"].value))
    asked = len(Puppet.asked)
    left = 2 * 3 - asked
    assert 3 < asked < 6, limits
    assert limits == [(0.036, pytest.approx(3 * 0.0015)), (0.036, pytest.approx(asked * 0.0015))]
    text = send_digest(small.workspace(), DAY, [])
    calls = f"{left} call{'s' * (left > 1)} not made because of this limit"
    assert text.splitlines()[0].endswith(f"; limit: ${asked * 0.0015:.4f} of $0.0360; {calls}")
    assert "second: incomplete" in text
