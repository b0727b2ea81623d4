"""Materialising in a real instance: versions, metadata, staleness, blocking checks, sensor, schedule, sweep."""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import dagster as dg
import pytest

from eval_pipeline.core.model import Partition
from eval_pipeline.defs import launch, schedules, sensors
from eval_pipeline.defs.instance import PROCESS, open_instance, process_tag, serve, sweep
from eval_pipeline.defs.partitions import DIMENSION, EPOCH, EVAL_DATE, SCOPE, date_tag
from eval_pipeline.defs.resources import Evaluation
from eval_pipeline.defs.storage import ReusingEventLog
from eval_pipeline.defs.suite_assets import suite_definitions
from eval_pipeline.stages.workspace import Silent
from eval_pipeline.tracks.finqa.track import TRACK
from eval_pipeline_tests.support import DAY, TWO_CASES, Lab, Puppet, case

TAGS = {EVAL_DATE: DAY.isoformat()}
QUIET: dict[str, Any] = dict(launch.QUIET)


@pytest.fixture
def instance(small: Lab) -> Iterator[dg.DagsterInstance]:
    with open_instance(small.home) as found:
        found.add_dynamic_partitions(DIMENSION, ["puppet"])
        yield found


def materialise(
    lab: Lab,
    instance: dg.DagsterInstance,
    *suites: str,
    only: Sequence[str] = (),
    launched: Mapping[str, str] = TAGS,
    partition_key: str = "puppet",
) -> dg.ExecuteInProcessResult:
    """Runs the chain of the suites, or the assets `suite/name` of it."""
    workspace = lab.workspace()
    loaded = [suite_definitions(workspace.suites[name]) for name in suites or ("small",)]
    keys = [asset.key for found in loaded for asset in found.assets or () if asset.key.path[-1] != "report"]
    keys = [key for key in keys if not only or key.to_user_string() in only]
    job = dg.define_asset_job("test", dg.AssetSelection.assets(*keys))
    resources = {"evaluation": Evaluation(workspace, Silent())}
    bound = dg.Definitions(jobs=[job], resources=resources, executor=dg.in_process_executor)
    resolved = dg.Definitions.merge(bound, *loaded).resolve_job_def("test")
    return resolved.execute_in_process(
        QUIET, instance, partition_key=partition_key, tags=dict(launched), raise_on_error=False
    )


def stale(lab: Lab, instance: dg.DagsterInstance) -> dict[str, set[str]]:
    """What the UI would show as out of date, and for which kinds of reason: `code`, `data`, `dependencies`."""
    from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
    from dagster._core.loader import LoadingContextForTest

    bound = dg.Definitions(resources={"evaluation": Evaluation(lab.workspace(), Silent())})
    graph = dg.Definitions.merge(bound, suite_definitions(lab.workspace().suites["small"])).resolve_asset_graph()
    resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
    found = {}
    for key in graph.get_all_asset_keys():
        partition = None if key.path[-1] in {"raw_dataset", "cases"} else "puppet"
        if key.path[-1] != "report" and resolver.get_status(key, partition) == StaleStatus.STALE:
            found[key.path[-1]] = {cause.category.value.lower() for cause in resolver.get_stale_causes(key, partition)}
    return found


def versions(result: dg.ExecuteInProcessResult) -> dict[str, tuple[str, str]]:
    """Data and code version by asset, as the run recorded them."""
    found = {}
    for event in result.get_asset_materialization_events():
        tags = event.step_materialization_data.materialization.tags or {}
        name = event.asset_key.path[-1]
        found[name] = (tags["dagster/data_version"], tags["dagster/code_version"])
    return found


def test_a_partition_has_versions_metadata_and_checks_on_record(small: Lab, instance: dg.DagsterInstance) -> None:
    first = materialise(small, instance)
    assert first.success
    found = versions(first)
    assert len(found) == 12
    assert len({data for data, _ in found.values()}) >= 11
    for event in first.get_asset_materialization_events():
        shown = event.step_materialization_data.materialization.metadata
        assert "dagster/row_count" in shown
        assert shown["reused"].value is False
        if event.asset_key.path[-1] not in {"raw_dataset", "cases"}:
            assert event.partition == "puppet"
            assert shown["eval_date"].value == DAY.isoformat()
    latest = instance.get_latest_materialization_event(dg.AssetKey(["small", "turn_metrics"]))
    assert latest is not None
    assert latest.asset_materialization is not None
    assert latest.asset_materialization.metadata["accuracy"].value == 1.0
    assert {(check.check_name, check.passed) for check in first.get_asset_check_evaluations()} == {
        ("gold_holds", True),
        ("oracle_and_null", True),
        ("every_turn_scored_once", True),
        ("no_metric_errors", True),
    }
    # Equal contents, equal data versions: nothing below becomes stale.
    assert versions(materialise(small, instance)) == found


def test_after_a_changed_scorer_only_what_is_below_has_other_versions(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    before = versions(materialise(small, instance))
    assert stale(small, instance) == {}
    changed = [
        replace(m, version=m.version + 1, function=lambda: 3.0) if m.name == "plan_steps" else m for m in TRACK.metrics
    ]
    monkeypatch.setattr(TRACK, "metrics", tuple(changed))
    Puppet.reset()
    assert stale(small, instance).keys() == {"turn_metrics"}  # what is below, once that has other data
    assert stale(small, instance)["turn_metrics"] == {"code"}
    after = versions(materialise(small, instance))
    assert stale(small, instance) == {}
    assert not Puppet.asked
    assert {name for name in before if before[name][1] != after[name][1]} == {"turn_metrics"}
    other_data = {name for name in before if before[name][0] != after[name][0]}
    # `statistics` follows from the changed column, the rest of the aggregates from columns that are as they were.
    assert {"statistics"} <= other_data <= {"turn_metrics", "statistics", "published", "error_analysis"}


def test_a_check_that_blocks_stops_its_own_suite_only(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scoring loses a turn of one suite."""
    from eval_pipeline.stages import score

    small.suite("lossy", [case("one", ("50", 50.0)), case("two", ("7", 7.0))])
    real = score.attempted_turns

    def losing(workspace: Any, partition: Any) -> Any:
        found = list(real(workspace, partition))
        return iter(found[1:] if partition.suite == "lossy" else found)

    monkeypatch.setattr(score, "attempted_turns", losing)
    result = materialise(small, instance, "lossy", "small")
    assert not result.success
    made = {tuple(event.asset_key.path) for event in result.get_asset_materialization_events()}
    assert ("lossy", "turn_metrics") in made
    assert {name for suite, name in made if suite == "lossy"}.isdisjoint({"statistics", "published"})
    assert ("small", "published") in made
    failed = [check for check in result.get_asset_check_evaluations() if not check.passed]
    assert [(check.asset_key.path[0], check.check_name) for check in failed] == [("lossy", "every_turn_scored_once")]
    assert "of 2 planned turns 1 are missing" in (failed[0].description or "")
    assert small.sql("SELECT DISTINCT suite FROM statistics") == [("small",)]


def test_what_the_user_can_mend_is_a_failure_without_a_trace(small: Lab, instance: dg.DagsterInstance) -> None:
    (small.home.data / "suites" / "small" / "cases" / "beta.yaml").write_text("id: beta\n")
    result = materialise(small, instance)
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    data = failure.step_failure_data
    assert data.user_failure_data is not None
    assert "small/cases/beta.yaml:1: turns: Field required" in (data.user_failure_data.description or "")
    assert not instance.get_latest_materialization_event(dg.AssetKey(["small", "generations"]))


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


def test_sweeping_ends_runs_whose_process_is_gone_and_no_others(instance: dg.DagsterInstance) -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as gone:
        pass
    names = ("alive", "dead", "reborn", "elsewhere", "none", "copied", "nonsense")
    ids = {name: str(uuid4()) for name in names}
    _, host, pid, started = process_tag("run").split(" ")
    tags = {
        "alive": process_tag(ids["alive"]),
        "dead": f"{ids['dead']} {host} {gone.pid} {started}",
        "reborn": f"{ids['reborn']} {host} {pid} 12345.00",  # the number was given to another process since
        "elsewhere": f"{ids['elsewhere']} not-{host} {gone.pid} {started}",
        "copied": f"{ids['dead']} {host} {gone.pid} {started}",  # a re-execution has its parent's tags
        "nonsense": ids["nonsense"],
    }
    for name, run_id in ids.items():
        own = {PROCESS: tags[name]} if name in tags else {}
        instance.add_run(dg.DagsterRun("job", run_id, tags=own, status=dg.DagsterRunStatus.STARTED))
    instance.event_log_storage.initialize_concurrency_limit_to_default("pool")
    instance.event_log_storage.set_concurrency_slots("pool", 2)
    instance.event_log_storage.claim_concurrency_slot("pool", ids["dead"], "step")
    instance.event_log_storage.claim_concurrency_slot("pool", ids["alive"], "step")
    assert set(sweep(instance)) == {ids["dead"], ids["reborn"]}
    status = {name: getattr(instance.get_run_by_id(found), "status", None) for name, found in ids.items()}
    failed, running = dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.STARTED
    assert status == {name: failed if name in {"dead", "reborn"} else running for name in names}
    held = instance.event_log_storage.get_concurrency_info("pool").claimed_slots
    assert {slot.run_id for slot in held} == {ids["alive"]}
    assert sweep(instance) == []


def test_the_launcher_runs_each_version_and_says_how_each_suite_came_out(small: Lab) -> None:
    small.suite("broken", track="chess")
    small.suite("other", [TWO_CASES[0]])
    small.versions({"name": "puppet", "provider": "puppet"}, {"name": "second", "provider": "oracle"})
    pairs = [Partition(s, v, DAY) for v in ("puppet", "second") for s in ("broken", "other", "small")]
    found = list(launch.run(small.home, launch.Request(pairs, with_report=False), Silent()))
    fine = {(f.suite, f.model_version) for f in found if not f.errors and not f.incomplete}
    assert {(s, v) for s in ("other", "small") for v in ("puppet", "second")} <= fine
    # Told once, not for each model version, which it has nothing to do with.
    (broken,) = [f for f in found if f.errors or f.incomplete]
    assert (broken.suite, broken.model_version, broken.incomplete) == ("broken", "", True)
    assert "unknown track 'chess'" in broken.errors[0]
    assert not small.home.reports.exists()
    assert small.one("SELECT count(*) FROM turn_results") == 2 * (2 + 3)


def test_a_suite_that_was_read_once_and_is_broken_now_runs_for_no_model_version(small: Lab) -> None:
    """Its old cases are still on record: none may be evaluated as if they were the present ones."""
    small.versions({"name": "puppet", "provider": "puppet"}, {"name": "second", "provider": "oracle"})
    small.evaluate(version="second", publish=True)
    (small.home.data / "suites" / "small" / "cases" / "beta.yaml").write_text("id: beta\n")
    pairs = [Partition("small", name, DAY) for name in ("puppet", "second")]
    (found,) = launch.run(small.home, launch.Request(pairs, with_report=False), Silent())
    assert (found.suite, found.model_version, found.incomplete) == ("small", "", True)
    assert "small/cases/beta.yaml:1: turns: Field required" in found.errors[0]
    assert not Puppet.asked


def dates(result: dg.ExecuteInProcessResult) -> dict[str, set[Any]]:
    """Evaluation dates that the materialisations of each suite say."""
    found: dict[str, set[Any]] = {}
    for event in result.get_asset_materialization_events():
        shown = event.step_materialization_data.materialization.metadata
        if "eval_date" in shown:
            found.setdefault(event.asset_key.path[0], set()).add(shown["eval_date"].value)
    return found


def test_a_run_without_a_date_has_one_date_though_the_record_has_a_later_one(
    small: Lab, instance: dg.DagsterInstance
) -> None:
    small.evaluate(day=date(2999, 3, 4))
    result = materialise(small, instance, launched={})
    assert result.success
    today = date.today().isoformat()
    assert dates(result) == {"small": {today}}
    run = instance.get_run_by_id(result.run_id)
    assert run is not None
    assert run.tags[EVAL_DATE] == today


def test_a_run_that_asks_nothing_keeps_the_date_that_it_began_with(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run records a later date meanwhile; each suite has a date of its own."""
    from eval_pipeline.stages import gather_evidence

    small.suite("other", [TWO_CASES[0]])
    small.suite("asking", [TWO_CASES[0]])
    small.evaluate(day=date(2026, 3, 4))
    small.evaluate("other", day=date(2026, 3, 2))
    small.evaluate("asking", day=date(2026, 3, 3))
    real = gather_evidence.gather_evidence

    def overtaken(workspace: Any, partition: Any) -> Any:
        if partition.suite == "small":
            small.evaluate(day=date(2026, 3, 9))
        return real(workspace, partition)

    only = [f"{suite}/{name}" for suite in ("small", "other") for name in ("evidence", "turn_metrics", "statistics")]
    only += ["asking/generations", "asking/recovery_attempts"]
    with monkeypatch.context() as patched:
        patched.setattr(gather_evidence, "gather_evidence", overtaken)
        # The laboratory's own calls go to the real one.
        patched.setattr("eval_pipeline_tests.support.gather_evidence", SimpleNamespace(gather_evidence=real))
        result = materialise(small, instance, "small", "other", "asking", only=only, launched={})
    assert result.success
    assert dates(result) == {"small": {"2026-03-04"}, "other": {"2026-03-02"}, "asking": {date.today().isoformat()}}
    run = instance.get_run_by_id(result.run_id)
    assert run is not None
    assert run.tags[date_tag("small", makes_generations=False)] == "2026-03-04"


def test_every_run_says_which_process_does_it(small: Lab, instance: dg.DagsterInstance) -> None:
    parent = materialise(small, instance, only=["small/cases", "small/generations"])
    copied = instance.get_run_by_id(parent.run_id)
    assert copied is not None
    assert copied.tags[PROCESS] == process_tag(parent.run_id)
    again = instance.get_run_by_id(materialise(small, instance, launched=copied.tags).run_id)
    assert again is not None
    assert again.tags[PROCESS] == process_tag(again.run_id)
    list(launch.run(small.home, launch.Request([Partition("small", "puppet", DAY)], with_report=False), Silent()))
    newest = instance.get_runs(limit=1)[0]
    assert newest.tags[PROCESS] == process_tag(newest.run_id)


def test_the_ui_sweeps_before_it_starts(
    small: Lab, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = str(uuid4())
    _, host, pid, _ = process_tag(run_id).split(" ")
    tags = {PROCESS: f"{run_id} {host} {pid} 12345.00"}
    instance.add_run(dg.DagsterRun("job", run_id, tags=tags, status=dg.DagsterRunStatus.STARTED))
    monkeypatch.setattr(subprocess, "run", lambda command, check: subprocess.CompletedProcess(command, 7))
    assert serve(small.home, "127.0.0.1", 3000) == 7
    swept = instance.get_run_by_id(run_id)
    assert swept is not None
    assert swept.status == dg.DagsterRunStatus.FAILURE


def test_the_users_storage_is_used(small: Lab, tmp_path: Path) -> None:
    with open_instance(small.home) as own:
        assert isinstance(own.event_log_storage, ReusingEventLog)
    settings = small.home.dagster / "dagster.yaml"
    settings.write_text(f"{settings.read_text()}storage:\n  sqlite:\n    base_dir: {tmp_path / 'elsewhere'}\n")
    with open_instance(small.home) as chosen:
        assert not isinstance(chosen.event_log_storage, ReusingEventLog)
        chosen.add_dynamic_partitions(DIMENSION, ["puppet"])
    assert (tmp_path / "elsewhere").is_dir()


def test_a_bad_tag_is_a_failure_in_one_sentence(small: Lab, instance: dg.DagsterInstance) -> None:
    for tag, sentence in (({SCOPE: "nonsense"}, "'nonsense' is no scope"), ({EVAL_DATE: "May"}, "is 'May'; expected")):
        result = materialise(small, instance, launched=TAGS | tag)
        (failure,) = [event for event in result.all_events if event.is_step_failure]
        found = failure.step_failure_data.user_failure_data
        assert found is not None
        assert sentence in (found.description or "")


def test_a_recorded_version_skips_suites_that_it_has_no_predictions_for(
    small: Lab, instance: dg.DagsterInstance
) -> None:
    elsewhere = {"other": {"file": "mine/other.jsonl", "content_hash": "0"}}
    mine = {"name": "mine", "provider": "recorded", "predictions": elsewhere}
    small.versions({"name": "puppet", "provider": "puppet"}, mine)
    instance.add_dynamic_partitions(DIMENSION, ["mine"])
    result = materialise(small, instance, partition_key="mine")
    assert result.success
    made = {event.asset_key.path[-1] for event in result.get_asset_materialization_events()}
    assert made == {"raw_dataset", "cases"}
    skipped = {event.step_key for event in result.all_events if event.event_type == dg.DagsterEventType.STEP_SKIPPED}
    assert {"small__recovery_attempts", "small__turn_metrics", "small__published"} <= skipped
