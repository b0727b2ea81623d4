"""Launching: from the command line, by schedule and sensor; which date and scope a run has."""

import gc
import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import dagster as dg
import pytest
import yaml

from eval_pipeline.chain.evaluation import COMPARING, INGESTING
from eval_pipeline.chain.stage import Stage
from eval_pipeline.core.model import Partition
from eval_pipeline.defs.assets.partitions import DIMENSION, EPOCH, EVAL_DATE, SCOPE, date_tag
from eval_pipeline.defs.automation import notifications, schedules, sensors
from eval_pipeline.defs.automation.jobs import COMPARE
from eval_pipeline.defs.automation.notifications import notify
from eval_pipeline.defs.running import launch
from eval_pipeline.defs.running.origin import DEFINITIONS, LOCATION, is_of_command_line
from eval_pipeline.defs.running.told.telling import OF_DEV, tell
from eval_pipeline.operations.runs import steps
from eval_pipeline.operations.runs.running import Finished, Request
from eval_pipeline.operations.upkeep.completing import complete_left
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.workspace import Silent, StageResult
from eval_pipeline_tests.defs.runs import ASKING, REPORTS, TAGS, dates, losing_a_turn, materialise, run_of
from eval_pipeline_tests.forked import completed
from eval_pipeline_tests.support import DAY, ROOT, TWO_CASES, Lab


def launched(lab: Lab, pairs: Sequence[Partition]) -> Sequence[Finished]:
    return launch.launch(lab.workspace(), Request(pairs, with_report=False), Silent())


def test_the_launcher_runs_each_version_and_says_how_each_suite_came_out(small: Lab) -> None:
    small.suite("broken", track="chess")
    small.suite("other", [TWO_CASES[0]])
    small.versions({"name": "puppet", "provider": "puppet"}, {"name": "second", "provider": "oracle"})
    pairs = [Partition(s, v, DAY) for v in ("puppet", "second") for s in ("broken", "other", "small")]
    found = launched(small, pairs)
    # Told once, not for each model version, which it has nothing to do with.
    (broken,) = found
    assert (broken.suite, broken.model_version, broken.incomplete) == ("broken", "", True)
    assert "unknown track 'chess'" in broken.errors[0]
    assert not small.home.reports.exists()
    assert small.one("SELECT count(*) FROM turn_results") == 2 * (2 + 3)


def test_a_run_without_a_date_has_one_date_though_the_record_has_a_later_one(
    small: Lab, instance: dg.DagsterInstance
) -> None:
    small.evaluate(day=date(2999, 3, 4))
    result = materialise(small, instance, launched={}, only=ASKING)
    assert result.success
    today = date.today().isoformat()
    assert dates(result) == {"small": {today}}
    assert run_of(instance, result.run_id).tags[EVAL_DATE] == today


def test_a_run_that_asks_nothing_keeps_the_date_that_it_began_with(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run records a later date meanwhile; each suite has a date of its own."""
    small.suite("other", [TWO_CASES[0]])
    small.suite("asking", [TWO_CASES[0]])
    small.evaluate(day=date(2026, 3, 4))
    small.evaluate("other", day=date(2026, 3, 2))
    small.evaluate("asking", day=date(2026, 3, 3))
    real = steps.run_stage

    def overtaken(stage: Stage, inputs: Inputs) -> StageResult:
        if (inputs.suite, stage.name) == ("small", "evidence"):
            small.evaluate(day=date(2026, 3, 9))
        return real(stage, inputs)

    only = [f"{suite}/{name}" for suite in ("small", "other") for name in ("evidence", "turn_metrics", "statistics")]
    only += ["asking/generations", "asking/recovery_attempts"]
    with monkeypatch.context() as patched:
        patched.setattr(steps, "run_stage", overtaken)
        result = materialise(small, instance, "small", "other", "asking", only=only, launched={})
    assert result.success
    assert dates(result) == {"small": {"2026-03-04"}, "other": {"2026-03-02"}, "asking": {date.today().isoformat()}}
    assert run_of(instance, result.run_id).tags[date_tag("small", makes_generations=False)] == "2026-03-04"


def test_a_bad_tag_is_a_failure_in_one_sentence(small: Lab, instance: dg.DagsterInstance) -> None:
    for tag, sentence in (
        ({SCOPE: "nonsense"}, "'nonsense' is not a scope"),
        ({EVAL_DATE: "May"}, "is 'May'; expected"),
    ):
        result = materialise(small, instance, launched=TAGS | tag, only=ASKING)
        (failure,) = [event for event in result.all_events if event.is_step_failure]
        found = failure.step_failure_data.user_failure_data
        assert found is not None
        assert sentence in (found.description or "")


def test_the_sensor_registers_new_model_versions(small: Lab, instance: dg.DagsterInstance) -> None:
    small.versions({"name": "puppet", "provider": "puppet"}, {"name": "new", "provider": "oracle"})
    with dg.build_sensor_context(instance=instance) as context:
        found = sensors.register_model_versions(context)
    assert isinstance(found, dg.SensorResult)
    (request,) = found.dynamic_partitions_requests or ()
    assert (request.partitions_def_name, list(request.partition_keys)) == (DIMENSION, ["new"])
    instance.add_dynamic_partitions(DIMENSION, ["new"])
    with dg.build_sensor_context(instance=instance) as context:
        skipped = sensors.register_model_versions(context)
    assert isinstance(skipped, dg.SkipReason)


def test_what_nobody_runs_is_no_partition_until_somebody_does(small: Lab, instance: dg.DagsterInstance) -> None:
    entries = [{"name": name, "provider": "oracle", "active": False} for name in ("idle", "ran", "recorded")]
    small.versions({"name": "puppet", "provider": "puppet"}, *entries)
    instance.delete_dynamic_partition(DIMENSION, "puppet")
    assert sensors.unregistered(instance, small.workspace()) == ["puppet"]
    launched(small, [Partition("small", "ran", DAY)])
    small.evaluate(version="recorded")
    assert set(instance.get_dynamic_partitions(DIMENSION)) == {"puppet", "ran"}
    assert sensors.unregistered(instance, small.workspace()) == ["recorded"], "as where Dagster's files were lost"
    # As 0.1.0 has left it:
    instance.add_dynamic_partitions(DIMENSION, ["idle", "recorded"])
    assert sensors.never_run(instance, small.workspace()) == ["idle"]
    instance.add_run(dg.DagsterRun("all_suites", str(uuid4()), tags={"dagster/partition": "idle"}))
    assert sensors.never_run(instance, small.workspace()) == []


def test_a_run_of_the_command_line_is_one_of_the_jobs_that_the_ui_shows(
    small: Lab, instance: dg.DagsterInstance, caplog: pytest.LogCaptureFixture
) -> None:
    small.suite("other", [TWO_CASES[0]])
    small.suite("third", [TWO_CASES[0]])
    for suites in (["small"], ["small", "other"]):
        pairs = [Partition(suite, "puppet", DAY) for suite in suites]
        launched(small, pairs)
    both, single = instance.get_runs(dg.RunsFilter(tags={".dagster/repository": "__repository__@eval_pipeline"}))
    assert (single.job_name, both.job_name) == ("suite_small", "all_suites")
    assert both.remote_job_origin is not None
    assert both.remote_job_origin.location_name == LOCATION
    # What a re-execution in the UI does again: not the third suite, which nobody asked for.
    assert {key.path[0] for key in both.asset_selection or ()} == {"small", "other"}
    seen = {name for name in both.tags if not name.startswith(".dagster/")}
    assert seen == {"dagster/code_location", "dagster/partition", EVAL_DATE}
    notify(instance, both, "the terminal has told of it")
    assert not [found for found in caplog.records if found.name == notifications.__name__]
    assert is_of_command_line(both)
    reexecuted = dg.DagsterRun("all_suites", str(uuid4()), tags=dict(both.tags))
    assert not is_of_command_line(reexecuted)


def test_the_name_of_the_code_location_is_that_of_the_workspace_file() -> None:
    (found,) = yaml.safe_load((ROOT / "workspace.yaml").read_text())["load_from"]
    assert found["python_module"] == {"module_name": DEFINITIONS, "location_name": LOCATION}


def red(instance: dg.DagsterInstance, suite: str = "small") -> set[str]:
    """Assets without partitions that the UI shows as failed: their last run failed, and did not make them."""
    keys = [dg.AssetKey([suite, name]) for name in (*INGESTING, *COMPARING)]
    found = set()
    for record in instance.get_asset_records(keys):
        entry = record.asset_entry
        run, made = instance.get_run_by_id(entry.last_run_id or ""), entry.last_materialization_record
        failed = run is not None and run.status == dg.DagsterRunStatus.FAILURE
        if failed and (made is None or made.run_id != entry.last_run_id):
            found.add(entry.asset_key.path[-1])
    return found


def looked_after(lab: Lab) -> int:
    """What `dev` does once the processes of runs have ended: the number of commands that it told Dagster of."""
    gc.collect()  # ends what these runs, which were in this process, hold locked
    assert complete_left(lab.workspace(), name=OF_DEV) == []
    return tell(lab.home)


def test_a_failed_run_of_the_ui_has_what_it_left_compared_afterwards(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.versions({"name": "puppet", "provider": "puppet"}, {"name": "second", "provider": "oracle"})
    instance.add_dynamic_partitions(DIMENSION, ["second"])
    assert materialise(small, instance).success
    losing_a_turn(monkeypatch, lambda inputs: inputs.place.model_version == "second")
    assert not materialise(small, instance, partition_key="second").success
    assert red(instance) == set(COMPARING) - REPORTS
    assert looked_after(small) == 1
    assert red(instance) == set()
    assert looked_after(small) == 0
    compared = instance.get_runs(limit=1)[0]
    assert (compared.job_name, compared.status) == (COMPARE, dg.DagsterRunStatus.SUCCESS)
    # Of a loss that is found no terminal tells; it is told once for a night.
    assert not is_of_command_line(compared)
    assert compared.tags[EVAL_DATE] == DAY.isoformat()


def test_what_is_wrong_with_a_suite_is_left_to_its_next_run(small: Lab, instance: dg.DagsterInstance) -> None:
    """Comparing again and again would not mend it."""
    path = small.home.data / "suites" / "small" / "cases" / "beta.yaml"
    good = path.read_text()
    path.write_text("id: beta\n")
    run = run_of(instance, materialise(small, instance).run_id)
    assert run.status == dg.DagsterRunStatus.FAILURE
    assert "cases" in red(instance)
    assert looked_after(small) == 0
    path.write_text(good)
    assert materialise(small, instance).success
    assert red(instance) == set()


def test_the_schedule_asks_for_every_active_registered_version_anew(small: Lab, instance: dg.DagsterInstance) -> None:
    entries = [{"name": name, "provider": "oracle"} for name in ("a", "b")]
    entries += [{"name": "sleeping", "provider": "oracle", "active": False}, {"name": "unknown", "provider": "oracle"}]
    small.versions(*entries)
    instance.add_dynamic_partitions(DIMENSION, ["a", "b", "sleeping"])

    def night() -> list[Any]:
        context = dg.build_schedule_context(instance, scheduled_execution_time=datetime(2026, 3, 7, 2, tzinfo=UTC))
        return list(schedules.nightly(context))  # type: ignore[call-overload]

    requests = night()
    assert [request.partition_key for request in requests] == ["a", "b"]
    assert [request.run_key for request in requests] == ["2026-03-07:a", "2026-03-07:b"]
    assert all(request.tags[EVAL_DATE] == request.tags[EPOCH] == "2026-03-07" for request in requests)
    assert [request.run_key for request in night()] == [request.run_key for request in requests]
    small.versions(entries[2])
    assert [type(found) for found in night()] == [dg.SkipReason]


def test_the_schedule_asks_for_a_model_version_once_a_date(small: Lab, instance: dg.DagsterInstance) -> None:
    """Dagster itself compares a run key only with runs of the same tick."""
    status = dg.DagsterRunStatus
    found = {"failed": status.FAILURE, "ended": status.SUCCESS, "canceled": status.CANCELED, "made": status.NOT_STARTED}
    small.versions(*[{"name": name, "provider": "oracle"} for name in [*found, "never"]])
    instance.add_dynamic_partitions(DIMENSION, [*found, "never"])

    def keys(hour: int, day: int = 7) -> list[str]:
        context = dg.build_schedule_context(instance, scheduled_execution_time=datetime(2026, 3, day, hour, tzinfo=UTC))
        told = list(schedules.nightly(context))  # type: ignore[call-overload]
        return [one.run_key for one in told if isinstance(one, dg.RunRequest)]

    def launch_as_dagster_does(key: str, status: dg.DagsterRunStatus) -> None:
        tags = {"dagster/schedule_name": "nightly", "dagster/run_key": key, EVAL_DATE: "2026-03-07"}
        instance.add_run(dg.DagsterRun("all_suites", str(uuid4()), tags=tags, status=status))

    for key in keys(2)[:4]:
        launch_as_dagster_does(key, found[key.partition(":")[2]])
    # The tick made a run but ended before it launched it: it goes on with it when it is asked again.
    assert keys(2) == keys(3) == ["2026-03-07:made", "2026-03-07:never"]
    assert len(keys(2, day=8)) == 5
    for key in keys(3):
        launch_as_dagster_does(key, status.STARTED)
    assert keys(4) == []


IN_ZONES = {
    ("Asia/Tokyo", "30 0 * * *"): "23T15:30 24, 24T15:30 25, 25T15:30 26, 26T15:30 27",
    # Summer time ends there on 25 October at 1 o'clock UTC: the same hour of the wall clock on either side.
    ("Europe/Berlin", "30 0 * * *"): "23T22:30 24, 24T22:30 25, 25T23:30 26, 26T23:30 27",
    ("UTC", "0 23 * * *"): "23T23:00 23, 24T23:00 24, 25T23:00 25, 26T23:00 26",
    # Two nights of one date: the run key is the same, so the second one asks nobody.
    ("Asia/Tokyo", "0 6,18 * * *"): "23T21:00 24, 24T09:00 24, 24T21:00 25, 25T09:00 25",
}


def test_nights_have_dates_of_the_projects_time_zone(small: Lab) -> None:
    small.versions({"name": "a", "provider": "oracle"})
    settings = [{"EVAL_TIMEZONE": zone, "EVAL_NIGHTLY_CRON": cron} for zone, cron in IN_ZONES]
    before = [datetime.now(ZoneInfo(zone)).date() for zone, _ in IN_ZONES]
    child = completed("eval_pipeline_tests.defs.runs:nights", (json.dumps(settings),), small.environment)
    assert child.returncode == 0, child.stderr
    told = map(json.loads, child.stdout.splitlines()[-len(IN_ZONES) :])
    for ((zone, cron), nights), day, (found, today) in zip(IN_ZONES.items(), before, told, strict=True):
        dates = ", ".join(f"{moment[8:]} {key[8:].removesuffix(':a')}" for moment, key in found)
        assert (zone, cron, dates) == (zone, cron, nights)
        assert today in {str(day), str(datetime.now(ZoneInfo(zone)).date())}


def test_every_run_of_a_backfill_has_the_day_on_which_it_was_launched(small: Lab, instance: dg.DagsterInstance) -> None:
    """Also those that begin after midnight."""
    from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill

    launched = datetime(2026, 3, 7, 23, 59)
    backfill = PartitionBackfill(
        backfill_id="night",
        status=BulkActionStatus.REQUESTED,
        from_failure=False,
        tags={},
        backfill_timestamp=launched.timestamp(),
        asset_selection=[dg.AssetKey(["small", "generations"])],
    )
    instance.add_backfill(backfill)
    result = materialise(small, instance, only=ASKING, launched={"dagster/backfill": "night"})
    assert dates(result) == {"small": {"2026-03-07"}}
    retried = materialise(small, instance, only=ASKING, launched={"dagster/backfill": "lost"})
    assert dates(retried) == {"small": {date.today().isoformat()}}
