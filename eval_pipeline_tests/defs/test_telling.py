"""What Dagster is told of commands: the same as if it had run them itself, once, whenever the telling is killed."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import dagster as dg
import pytest

from eval_pipeline.api.evaluating import evaluate
from eval_pipeline.chain.evaluation import chain_of
from eval_pipeline.chain.stage import Stage
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.core.system.interrupts import handlers_kept
from eval_pipeline.defs.assets.partitions import DIMENSION, EVAL_DATE, SCOPE
from eval_pipeline.defs.assets.resources import EvaluationResource
from eval_pipeline.defs.automation import notifications
from eval_pipeline.defs.running.instance import open_instance
from eval_pipeline.defs.running.origin import job_over
from eval_pipeline.defs.running.removing import forget
from eval_pipeline.defs.running.told import telling
from eval_pipeline.defs.running.told.noted_runs import NotedStep, left_out, noted_runs
from eval_pipeline.defs.running.told.telling import tell
from eval_pipeline.operations.runs import running, steps
from eval_pipeline.suites.headers import read_header
from eval_pipeline.tracks.registry import ALL_TRACKS
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.noting.commands import Command, ended
from eval_pipeline.workspace.noting.noted import Noted
from eval_pipeline.workspace.workspace import Silent, Workspace
from eval_pipeline_tests.defs.runs import QUIET, REPORTS, stale
from eval_pipeline_tests.plugins.dask.test_shipped_suites import MEASURING, OF_TOOLS, UNMEASURED
from eval_pipeline_tests.support import DAY, SHIPPED, Lab

BEGAN = datetime(2026, 3, 1, 8, tzinfo=UTC)
RUN = "11111111-2222-4333-8444-555555555555"
POINTER = "dagster/input_event_pointer"
MATERIALISED, CHECKED = dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.ASSET_CHECK_EVALUATION


def at(seconds: float) -> str:
    """A time as notes have it."""
    return (BEGAN + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()


def step(stage: str, ended: float, run: str = RUN, suite: str = "small", **told: Any) -> dict[str, Any]:
    """A step of a note that took a second; without `error`, one that went well."""
    made = {} if "error" in told else {"rows": 3, "hash": "0123456789abcdef", "reused": False, "facts": {}}
    return {"stage": stage, "run": run, "suite": suite, "began": at(ended - 1), "ended": at(ended), **made, **told}


def run(name: str = RUN, version: str | None = "puppet", status: str = "", *steps: Mapping[str, Any]) -> list[Any]:
    """The lines of a run; with a status, it has ended."""
    day = DAY.isoformat() if version else None
    begun = {"run": name, "model_version": version, "eval_date": day, "suites": ["small"], "at": at(0), "scope": "full"}
    return [begun, *steps, *([{"run_ended": name, "status": status, "at": at(100)}] if status else [])]


CHECK = {"name": "every_case_read", "passed": True, "text": "all read", "facts": {"cases": 2}, "warning": False}
FAILS = run(
    RUN,
    "puppet",
    "failed",
    step("raw_dataset", 1),
    step("cases", 2, checks=[CHECK]),
    step("generations", 3, error="no key is set"),
)


def left_note(lab: Lab, lines: list[Any]) -> None:
    command = Command(lab.home, "run")
    for line in lines:
        command.note(line, durable=False)
    command.settle()


def events(instance: dg.DagsterInstance, run_id: str = RUN) -> list[tuple[Any, ...]]:
    """What a run's page shows, without ids of rows."""
    found = (entry for entry in instance.all_logs(run_id) if entry.dagster_event)
    return [(e.timestamp - BEGAN.timestamp(), e.step_key, e.get_dagster_event().event_type_value) for e in found]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], []),
        (run(), []),  # nothing was done
        (run(RUN, "m", "success", step("cases", 5)), [("m", "success", 0, 5)]),  # not when the command ended
        (run(RUN, "m", "failed", step("cases", 5, error="no")), [("m", "failed", 0, 100)]),
        (run(RUN, "m", "", step("cases", 5)), [("m", "failed", 0, 5)]),  # its process died
        (run(RUN, None, "success", step("trends", 5)), [("", "success", 0, 5)]),
    ],
)
def test_runs_are_read_from_notes(lines: list[Any], expected: list[tuple[Any, ...]]) -> None:
    first = BEGAN.timestamp()
    found = [(r.model_version, r.status, r.began - first, r.ended - first) for r in noted_runs(Noted(tuple(lines)))]
    assert found == expected


def test_what_a_step_says_is_what_the_stage_said(small: Lab) -> None:
    facts = {"folder": Path("/a/b"), "share": 0.1, "by": {"path": "x", "n": 1}, "list": [1, None]}
    left_note(small, run(RUN, "m", "success", step("cases", 1, facts=facts, checks=[CHECK])))
    ((_, noted, _),) = ended(small.home)
    ((told,),) = (found.steps for found in noted_runs(noted))
    assert told.result is not None
    assert told.result.facts == facts
    assert told.verdicts["every_case_read"].facts == {"cases": 2}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ({"cases": ""}, set()),
        ({"generations": "fails"}, {"recovery_attempts", "turn_metrics", "statistics", "published"}),
        ({"statistics": "fails", "coverage": ""}, {"gold_editions", "published"}),
        ({"raw_dataset": "fails"}, {"generations", "published"}),  # but `cases` is shown by nobody as of a partition
        ({"trends": "fails"}, set()),
    ],
)
def test_what_needs_a_failed_step_is_left_out(steps: dict[str, str], expected: set[str], small: Lab) -> None:
    chain = chain_of(small.workspace().track("small"))
    told = {name: NotedStep("small", name, 0, 1, error, None, {}) for name, error in steps.items()}
    found = {stage.name for stage in left_out(chain, told)}
    assert found >= expected
    assert not found & {*steps, "cases", "report", "trends", "comparison_report"}
    assert bool(found) == bool(expected)


@pytest.mark.always
def test_a_failure_is_shown_as_one_and_nobody_is_notified(small: Lab, instance: dg.DagsterInstance) -> None:
    left_note(small, FAILS)
    assert tell(small.home) == 1
    assert list(ended(small.home)) == []
    record = instance.get_run_record_by_id(RUN)
    assert record is not None
    found, tags = record.dagster_run, record.dagster_run.tags
    assert (found.job_name, found.status) == ("suite_small", dg.DagsterRunStatus.FAILURE)
    assert (tags["dagster/partition"], tags[EVAL_DATE]) == ("puppet", DAY.isoformat())
    assert (record.start_time, record.end_time) == (BEGAN.timestamp(), BEGAN.timestamp() + 100)
    assert found.execution_plan_snapshot_id, "else its page has no steps"
    told = events(instance)
    assert [kind for _, name, kind in told if name == "small__cases"] == [
        *("STEP_START", "ASSET_MATERIALIZATION", "ASSET_CHECK_EVALUATION", "STEP_SUCCESS")
    ]
    assert (3.0, "small__generations", "STEP_FAILURE") in told
    assert {name for _, name, kind in told if kind == "STEP_SKIPPED"} >= {"small__turn_metrics", "small__published"}
    assert told[-1] == (100.0, None, "PIPELINE_FAILURE")
    red = {name for _, name, kind in told if kind == "ASSET_MATERIALIZATION_PLANNED"}
    assert red == {"small__generations"}, "what the run never began with has not failed"
    (error,) = notifications.errors_of(instance, RUN)
    assert error.sentence == "small: no key is set"
    with patch.object(notifications, "message") as message:
        notifications.notify(instance, found, "it failed")
    message.assert_not_called()


def test_it_may_be_killed_anywhere_and_is_told_once(small: Lab) -> None:
    left_note(small, FAILS)
    ((_, noted, _),) = ended(small.home)
    plans = telling._Plans(small.workspace())

    def told(die_at: int) -> tuple[Any, ...]:
        counts = []
        with dg.DagsterInstance.ephemeral() as instance:
            for most in (die_at, 10_000):
                dying = Dying(most)
                stores = [(instance.event_log_storage, "store_event"), (instance.run_storage, "handle_run_event")]
                stores += [(instance.run_storage, "add_historical_run")]
                with pytest.MonkeyPatch.context() as patched:
                    for storage, name in stores:
                        patched.setattr(storage, name, dying(getattr(storage, name)))
                    try:
                        telling.tell_of(noted, instance, plans)
                    except KeyboardInterrupt:
                        assert most == die_at
                counts.append(dying.done)
            made = instance.fetch_materializations(dg.AssetKey(["small", "cases"]), limit=9).records
            runs = [(r.dagster_run.status, r.start_time, r.end_time) for r in instance.get_run_records()]
            return counts, events(instance), runs, len(made)

    whole = told(0)
    steps, again = whole[0]
    assert steps == 26, "each write that a whole telling makes"
    assert again == 0, "of a run that is known, nothing is told"
    for die_at in range(1, steps + 1, 5):
        assert told(die_at)[1:] == whole[1:], die_at


class Dying:
    """Kills at a call, after it was done or before by turns."""

    def __init__(self, at: int) -> None:
        self.at, self.done = at, 0

    def __call__(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            self.done += 1
            if self.done == self.at and self.at % 2:
                raise KeyboardInterrupt
            found = call(*arguments, **named)
            if self.done == self.at:
                raise KeyboardInterrupt
            return found

        return counted


def test_what_is_known_of_later_is_not_overwritten(small: Lab, instance: dg.DagsterInstance) -> None:
    small.versions({"name": "puppet", "provider": "puppet"}, {"name": "second", "provider": "puppet"})
    later, other = str(uuid4()), str(uuid4())
    left_note(small, run(later, "puppet", "success", step("cases", 50, later), step("evidence", 51, later)))
    left_note(small, run(other, "second", "success", step("generations", 99, other)))
    left_note(small, run(RUN, "puppet", "success", *(step(name, 5) for name in ("cases", "generations", "evidence"))))
    assert tell(small.home) == 3
    for name, runs in (("cases", [later]), ("generations", [RUN, other]), ("evidence", [later])):
        made = instance.fetch_materializations(dg.AssetKey(["small", name]), limit=9).records
        assert [found.run_id for found in made] == runs, name
    assert (5.0, "small__cases", "STEP_SUCCESS") in events(instance)


def test_what_compares_is_told_after_all_that_it_compares(small: Lab, instance: dg.DagsterInstance) -> None:
    small.versions({"name": "puppet", "provider": "puppet"}, {"name": "second", "provider": "puppet"})
    other = str(uuid4())
    first = run(RUN, "puppet", "success", step("statistics", 10), step("trends", 40))
    left_note(small, [*first, *run(other, "second", "success", step("statistics", 20, other))])
    assert tell(small.home) == 1
    (latest, earlier) = instance.fetch_materializations(dg.AssetKey(["small", "statistics"]), limit=9).records
    assert (latest.run_id, earlier.run_id) == (other, RUN)
    trends = instance.get_latest_materialization_event(dg.AssetKey(["small", "trends"]))
    assert trends is not None
    assert trends.asset_materialization is not None
    assert (trends.asset_materialization.tags or {})[f"{POINTER}/small/statistics"] == str(latest.storage_id)


@pytest.mark.parametrize("used", [True, False])
def test_a_model_version_that_is_purged_is_in_no_note(small: Lab, used: bool) -> None:
    if used:
        with open_instance(small.home):
            pass
    left_note(small, FAILS)
    assert forget(small.home, "another", partition=True, history=False, dry_run=False) == 0
    assert len(list(ended(small.home))) == 1
    assert forget(small.home, "puppet", partition=True, history=True, dry_run=False) == used
    assert list(ended(small.home)) == []
    with open_instance(small.home) as instance:
        assert instance.get_runs() == []


def test_of_what_is_gone_nothing_is_told_and_what_cannot_be_told_stays(
    small: Lab, instance: dg.DagsterInstance, caplog: pytest.LogCaptureFixture
) -> None:
    left_note(small, run(RUN, "removed", "success", step("cases", 5)))
    gone = str(uuid4())
    left_note(small, run(gone, "puppet", "success", step("cases", 5, gone, "gone")))
    assert tell(small.home) == 2
    assert instance.get_runs() == []
    left_note(small, run(RUN, "puppet", "success", step("cases", 5, facts=None)))
    left_note(small, run(gone, "puppet", "success", step("cases", 5, gone)))
    with patch.object(telling, "_MOST_S", -1):  # the rest is left to the next look
        assert tell(small.home) == 0
    assert tell(small.home) == 1
    assert "cannot tell Dagster of the command" in caplog.text
    assert [found.run_id for found in instance.get_runs()] == [gone]
    assert len(list(ended(small.home))) == 1


def test_nothing_told_looks_out_of_date_until_it_is(small: Lab, instance: dg.DagsterInstance) -> None:
    def last(name: str) -> dg.AssetMaterialization:
        event = instance.get_latest_materialization_event(dg.AssetKey(["small", name]))
        assert event is not None
        assert event.asset_materialization is not None
        return event.asset_materialization

    evaluate(small.workspace(), [Partition("small", "puppet", DAY)], Scope(), "", Silent(), report=False)
    ((_, noted, _),) = ended(small.home)
    assert tell(small.home) == 1
    assert stale(small, instance) == {}
    assert {"accuracy", "table"} <= last("statistics").metadata.keys()
    (made,) = (found.run_id for found in instance.get_runs())
    text = json.dumps([line for line in noted.entries if "ended" not in line or "stage" in line])
    left_note(small, json.loads(text.replace(made, RUN)))
    with patch.object(telling, "code_version", lambda *_: "of another day"):
        assert tell(small.home) == 1
    assert set(stale(small, instance)) == {"published", "comparison_published"}, "the record tells the code of others"
    other = str(uuid4())
    gone = [step(name, 10**9, other, hash="another", facts={"n": 1}) for name in ("raw_dataset", "statistics")]
    left_note(small, run(other, "puppet", "success", *gone))
    assert tell(small.home) == 1
    assert stale(small, instance)["cases"] == {"data"}
    assert last("statistics").metadata.keys() == {"dagster/row_count", "reused", "n", "eval_date"}


def shown(instance: dg.DagsterInstance, root: Path) -> dict[str, Any]:
    """What the pages of assets show of the last run: metadata, versions, inputs, and results of checks."""
    told: dict[str, Any] = {}
    (run_id,) = [found.run_id for found in instance.get_runs()]
    for entry in instance.all_logs(run_id, of_type={MATERIALISED, CHECKED}):
        event = entry.get_dagster_event()
        if event.event_type == MATERIALISED:
            made = event.step_materialization_data.materialization
            tags = {name: value for name, value in (made.tags or {}).items() if "event_pointer" not in name}
            told[made.asset_key.to_user_string()] = (made.partition, made.metadata, tags)
        else:
            check = event.asset_check_evaluation_data
            place = f"{check.asset_key.to_user_string()}:{check.check_name}"
            described = (check.severity, check.description, check.blocking, check.partition)
            told[place] = (check.passed, check.metadata, described)
    return {name: str(found).replace(str(root), "") for name, found in told.items()}


def by_dagster(workspace: Workspace, instance: dg.DagsterInstance, place: Partition, scope: Scope) -> None:
    chain = chain_of(workspace.track(place.suite))
    keys = [dg.AssetKey([place.suite, stage.name]) for stage in chain]
    tags = {EVAL_DATE: place.eval_date.isoformat(), SCOPE: scope.label()}
    job = job_over(EvaluationResource(workspace, Silent()), "suite", keys)
    instance.add_dynamic_partitions(DIMENSION, [place.model_version])
    with handlers_kept():
        made = job.execute_in_process(QUIET, instance, partition_key=place.model_version, tags=tags, run_id=RUN)
    assert made.success


def by_command(workspace: Workspace, _: dg.DagsterInstance, place: Partition, scope: Scope) -> None:
    with patch.object(running, "uuid4", lambda: RUN):
        found = evaluate(workspace, [place], scope, "", Silent(), report=True)
    assert found.done == [place]
    assert tell(workspace.home) == 1


OF_EACH_TRACK = ("agents_sample", "finqa_sample", "pandas_sample", "sdmx_sample", "sql_sample", "tickets_sample")
"""A chain is that of its track, whichever suite it is."""


def test_there_is_a_suite_of_each_track() -> None:
    assert {read_header(SHIPPED / "suites" / name).track().name for name in OF_EACH_TRACK} == set(ALL_TRACKS.names())


def answerable(workspace: Workspace, suite: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model version that can answer a suite without a key."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return next(name for name in ("simulated-weak", "oracle") if not workspace.why_not(name, suite))


@pytest.mark.parametrize("suite", OF_EACH_TRACK)
def test_what_stages_of_every_track_say_is_read_from_notes_as_they_said_it(
    suite: str, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.shipped(suite, 2)
    workspace, said = lab.workspace(), dict[str, steps.Step]()
    version = answerable(workspace, suite, monkeypatch)

    def heard(stage: Stage, inputs: Inputs, checked: Callable[[Stage, Inputs], steps.Step] = steps.checked) -> Any:
        return said.setdefault(stage.name, checked(stage, inputs))

    monkeypatch.setattr(steps, "checked", heard)
    found = evaluate(workspace, [Partition(suite, version, DAY)], Scope(), "", Silent(), report=False)
    assert found.done == [Partition(suite, version, DAY)]
    ((_, noted, _),) = ended(lab.home)
    told = {step.stage: step for run in noted_runs(noted) for step in run.steps}
    published = {"published", "comparison_published"}
    assert said.keys() >= {stage.name for stage in chain_of(workspace.track(suite))} - published - REPORTS
    for name, step in said.items():
        assert told[name].result == step.result, name
        heard_of = {check: (one.passed, one.text, one.facts) for check, one in told[name].verdicts.items()}
        assert heard_of == {check.name: (one.passed, one.text, one.facts) for check, one in step.found}, name


OTHER_TRACKS = [pytest.param(name, marks=pytest.mark.soak) for name in OF_EACH_TRACK if name != "finqa_sample"]


@pytest.mark.parametrize("suite", ["finqa_sample", *OTHER_TRACKS])
def test_every_stage_is_the_same_both_ways(suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, record = [], []
    Lab(Home(tmp_path, tmp_path / "data")).shipped(suite, 3)
    for way in (by_dagster, by_command):
        home = Home(tmp_path / way.__name__, tmp_path / "data")
        monkeypatch.setenv("EVAL_HOME", str(home.root))
        workspace = Workspace(home)
        version = answerable(workspace, suite, monkeypatch)
        lab = Lab(home)
        for stage in ("raw_dataset", "cases"):
            lab.stage(stage, lab.inputs(suite, version))
        cases = tuple(sorted(case.id for case in workspace.cases(suite))[:2])
        with open_instance(home) as instance:
            way(workspace, instance, Partition(suite, version, DAY), Scope(cases=cases))
            told.append(shown(instance, home.root))
        paths = (path for path in home.record.rglob("*.parquet") if "runs" not in path.parts)
        record.append({str(path.relative_to(home.record)): path.read_bytes() for path in paths})
    chain = chain_of(workspace.track(suite))
    assert set(told[0]) >= {f"{suite}/{stage.name}" for stage in chain}
    assert set(told[0]) >= {f"{suite}/{stage.name}:{check.name}" for stage in chain for check in stage.checks}
    assert told[1].keys() == told[0].keys()
    # The data version of the evidence is also that of the measured times beside it.
    measuring, unmeasured = suite in MEASURING or suite in OF_TOOLS, OF_TOOLS.get(suite, UNMEASURED)
    same = [name for name in told[0] if not measuring or name.split("/")[1] in unmeasured - {"evidence"}]
    assert {name: (told[1][name], told[0][name]) for name in same if told[1][name] != told[0][name]} == {}
    assert record[1].keys() == record[0].keys()
    other = {name.split("/")[0] for name, held in record[0].items() if record[1][name] != held}
    assert not other & unmeasured if measuring else not other, other
