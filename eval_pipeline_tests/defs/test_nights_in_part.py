"""Nights that ask a part of a suite (`nightly` of a model version), from the tags of the schedule to the digest."""

import datetime as dt
from datetime import UTC, datetime

import dagster as dg
import pytest

from eval_pipeline.core.model import Partition
from eval_pipeline.defs.assets.partitions import DIMENSION, EPOCH, EVAL_DATE, PART, RESCORES
from eval_pipeline.defs.automation import schedules
from eval_pipeline.defs.automation.notifications import errors_of
from eval_pipeline.defs.automation.sensors import never_run, unregistered
from eval_pipeline.providers.base import Call
from eval_pipeline.reports.nights.message import night_message
from eval_pipeline.reports.nights.night import read_night
from eval_pipeline.reports.nights.page import write_night
from eval_pipeline.workspace.asked.planned import planned_scope
from eval_pipeline_tests.defs.runs import materialise
from eval_pipeline_tests.support import Lab, Puppet, case, number

CASES = 40
TURNS = CASES + 3  # those of the fixture among them
SUNDAY = dt.date(2026, 3, 1)


def answers(wrong: int) -> None:
    """Makes the puppet fail on every case whose number, to base 36, is below `wrong` modulo 8."""

    def answer(call: Call) -> str:
        return number(-1) if int(call.case_id[1:], 36) % 8 < wrong else call.gold.oracle()

    Puppet.answer = staticmethod(answer)


def requests(instance: dg.DagsterInstance, day: dt.date) -> list[dict[str, str]]:
    at = datetime(day.year, day.month, day.day, 2, tzinfo=UTC)
    context = dg.build_schedule_context(instance, scheduled_execution_time=at)
    return [dict(found.tags) for found in schedules.nightly(context)]  # type: ignore[call-overload]


def told(lab: Lab, day: dt.date) -> str:
    night = read_night(lab.workspace().record, day)
    write_night(night, lab.home.reports)
    return night_message(night)


def logged(instance: dg.DagsterInstance, result: dg.ExecuteInProcessResult) -> str:
    return "\n".join(entry.user_message for entry in instance.all_logs(result.run_id))


def check(result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
    (found,) = [one for one in result.get_asset_check_evaluations() if one.check_name == "no_significant_loss"]
    return found


def plan(lab: Lab) -> str:
    said = lab.cli("plan", "--suite", "small", "--model-version", "puppet")
    assert said.code == 0, said.text
    return said.out


def test_nights_ask_a_part_and_once_a_week_the_whole(small: Lab, instance: dg.DagsterInstance) -> None:
    entry = {"name": "puppet", "provider": "puppet", "nightly": {"part": "50%", "full": "sunday"}}
    small.versions(entry, {"name": "whole", "provider": "puppet"})
    small.suite(cases=[case(f"c{place:03}", ("50", 50.0)) for place in range(CASES)])
    instance.add_dynamic_partitions(DIMENSION, ["whole"])

    # The schedule: a part on every day but one, and only of the model version that is configured so.
    assert [tags.get(PART) for tags in requests(instance, SUNDAY)] == [None, None]
    assert [tags.get(PART) for tags in requests(instance, SUNDAY + dt.timedelta(days=1))] == ["50%", None]

    def night(days: int) -> tuple[dt.date, dg.ExecuteInProcessResult]:
        day = SUNDAY + dt.timedelta(days=days)
        Puppet.asked.clear()
        launched = {EVAL_DATE: day.isoformat(), EPOCH: day.isoformat(), RESCORES: "true", PART: "50%"}
        result = materialise(small, instance, launched=launched)
        assert result.success, logged(instance, result)
        return day, result

    # There is no full evaluation yet: the night is a full one, and says why.
    answers(1)
    assert "nightly   the whole suite until there is a full evaluation" in plan(small)
    first, result = night(0)
    assert len(Puppet.asked) == TURNS
    assert "the whole suite is asked: 'puppet' has no full evaluation of 'small'" in logged(instance, result)
    assert f"nightly   at most 50% of the cases, against the full evaluation of {first}" in plan(small)

    # The same model: a part is asked, everything says so, and it is never compared as if it were the whole.
    day, result = night(1)
    asked = len(Puppet.asked)
    assert 10 <= asked <= 0.5 * TURNS + 2
    scope = planned_scope(small.workspace(), Partition("small", "puppet", day))
    assert scope.count("decided-against puppet within 50%")
    passed = check(result)
    estimated = f"against the full evaluation of {first}, estimated from a part of the suite ({asked} of {TURNS} turns)"
    assert (passed.passed, estimated in str(passed.description)) == (True, True), passed.description
    assert small.sql("SELECT eval_date FROM trends") == [(first,)]
    assert small.one("SELECT count(*) FROM model_comparisons") == 0
    text = told(small, day)
    assert f"estimated from {asked} of {TURNS} turns" in text
    assert f"{estimated}: undecided" in text
    assert "loss by a part" not in text

    # It has become worse: the check fails, and so the notification, the digest and its page say it.
    answers(6)
    day, result = night(2)
    assert len(Puppet.asked) <= 0.5 * TURNS + 2
    assert not check(result).passed
    ((notice),) = [found.sentence for found in errors_of(instance, result.run_id)]
    assert f"puppet on {day}: −" in notice
    assert notice.endswith("turns): worse")
    text = told(small, day)
    assert "0 still open; 1 loss by a part of the suite" in text
    assert "• loss by a part of the suite: small · puppet: −" in text
    assert "loss by a part of the suite" in (small.home.reports / "nights" / f"{day}.html").read_text()

    # Another edition of the suite cannot be compared with the old one; run again, the night asks nothing.
    small.suite(cases=[case("c000", ("50", 51.0))])
    day, result = night(3)
    assert len(Puppet.asked) == TURNS
    assert f"'puppet' on {first} is of another edition of 'small'" in logged(instance, result)
    _, result = night(3)
    assert not Puppet.asked
    assert "it has been asked in full on this date before" in logged(instance, result)


@pytest.mark.always
def test_prompts_are_partitions_and_nights_ask_those_that_say_so(small: Lab, instance: dg.DagsterInstance) -> None:
    small.suite(prompts={"steps": {"after": "Think.", "nightly": True}, "bare": {"after": "Be terse."}})
    small.suite("other", prompts={"steps": {"after": "Think."}})
    small.suite("third")
    small.versions({"name": "puppet", "provider": "puppet"}, {"name": "idle", "provider": "oracle", "active": False})

    names = unregistered(instance, small.workspace())
    instance.add_dynamic_partitions(DIMENSION, names)

    assert names == ["puppet+steps", "puppet+bare"]  # `puppet` is one already; `idle` is not active
    assert never_run(instance, small.workspace()) == []
    context = dg.build_schedule_context(instance, scheduled_execution_time=datetime(2026, 3, 1, 2, tzinfo=UTC))
    plain, steps = schedules.nightly(context)  # type: ignore[call-overload]
    assert (plain.partition_key, plain.asset_selection) == ("puppet", None)
    assert (steps.partition_key, steps.run_key) == ("puppet+steps", "2026-03-01:puppet+steps")
    assert {key.path[0] for key in steps.asset_selection} == {"small"}
    assert dg.AssetKey(["small", "generations"]) in steps.asset_selection
