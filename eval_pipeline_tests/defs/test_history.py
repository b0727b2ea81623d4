"""Retention in Dagster's storage: what belongs to dates that are gone goes, whoever looks or kills meanwhile."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    ScheduleInstigatorData,
    TickData,
    TickStatus,
)

from eval_pipeline.core.home import Home
from eval_pipeline.defs.running.instance import open_instance
from eval_pipeline.defs.running.origin import job_origin
from eval_pipeline.defs.running.pruning import ForgottenRuns, prune_history
from eval_pipeline.defs.running.told.telling import tell
from eval_pipeline.operations.upkeep.pruning import Remaining, remaining
from eval_pipeline.workspace.noting.commands import Command
from eval_pipeline_tests.support import DAY, Lab

NIGHTS = 4
CHECK = {"name": "every_case_read", "passed": True, "text": "all read", "facts": {"cases": 2}, "warning": False}


def night(count: int) -> date:
    return DAY + timedelta(days=count)


def run_id(count: int, kind: int) -> str:
    return f"{count:08}-0000-4000-8000-{kind:012}"


OWN, COMPARED = 0, 1
IDS = {run_id(count, kind): (count, kind) for count in range(NIGHTS) for kind in (OWN, COMPARED)}


def note_night(lab: Lab, count: int, *stages: str) -> None:
    """A night of one model version, and the run that compares."""
    at = datetime.combine(night(count), datetime.min.time()) + timedelta(hours=2)

    def steps(run: str, names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        for second, stage in enumerate(names):
            times = {"began": (at + timedelta(seconds=second)).isoformat()}
            times["ended"] = (at + timedelta(seconds=second + 1)).isoformat()
            told = {"rows": 3, "hash": "0123456789abcdef", "reused": False, "facts": {}, "checks": []}
            told |= {"checks": [CHECK]} if stage == "cases" else {}
            yield {"stage": stage, "run": run, "suite": "small", **times, **told}

    command = Command(lab.home, "run")
    for kind, version, names in ((OWN, "puppet", stages), (COMPARED, None, ("model_comparisons", "trends"))):
        own = run_id(count, kind)
        day = night(count).isoformat() if version else None
        command.note(
            {
                "run": own,
                "model_version": version,
                "eval_date": day,
                "suites": ["small"],
                "at": at.isoformat(),
                "scope": "full",
            },
            durable=False,
        )
        for step in steps(own, names):
            command.note(step, durable=False)
        ended = (at + timedelta(seconds=9)).isoformat()
        command.note({"run_ended": own, "status": "success", "at": ended}, durable=False)
    command.settle()


@pytest.fixture
def nights(small: Lab, module_folder: Path) -> Lab:
    def make(lab: Lab) -> None:
        for count in range(NIGHTS):
            note_night(lab, count, *(("raw_dataset", "cases") if count == 0 else ()), "generations", "statistics")
        while tell(lab.home):
            pass

    return small.made_once(module_folder / "told", make)


def left(*counts: int, suites: tuple[str, ...] = ("small",)) -> Remaining:
    """What remains if these nights do."""
    found = frozenset(("puppet", night(count)) for count in counts)
    return Remaining(frozenset(suites), found, min(day for _, day in found))


def pruned(lab: Lab, remaining: Remaining, *, dry_run: bool = False) -> ForgottenRuns:
    return prune_history(lab.home, remaining, dry_run=dry_run)


def runs(home: Home) -> set[tuple[int, int]]:
    with open_instance(home) as instance:
        return {IDS[run.run_id] for run in instance.get_runs()}


def rows(home: Home, file: str, query: str) -> list[Any]:
    with closing(sqlite3.connect(home.dagster / "history" / file)) as connection:
        return connection.execute(query).fetchall()


def files(home: Home) -> set[str]:
    return {path.stem for path in (home.dagster / "history" / "runs").glob("*-*.db*")}


def test_runs_of_dates_that_are_gone_leave_no_row_and_no_file_but_for_the_one_that_an_asset_shows(nights: Lab) -> None:
    home, kept = nights.home, {(0, OWN), (2, OWN), (2, COMPARED), (3, OWN), (3, COMPARED)}
    logs = home.dagster / "storage" / run_id(1, OWN) / "compute_logs"
    logs.mkdir(parents=True)
    (logs / "step.err").write_text("a line")
    before = (runs(home), files(home))
    assert pruned(nights, left(2, 3), dry_run=True) == ForgottenRuns(3, 8)
    assert (runs(home), files(home)) == before
    assert logs.exists()
    assert pruned(nights, left(2, 3)) == ForgottenRuns(3, 8)
    assert runs(home) == kept, "the first night has read the files, which the others found as they were"
    assert not logs.exists()
    ids = {name for name, of in IDS.items() if of in kept}
    assert files(home) == ids
    for table in ("event_logs", "asset_check_executions"):
        found = {name for (name,) in rows(home, "runs/index.db", f"SELECT DISTINCT run_id FROM {table}")}
        assert found <= ids, table
    assert {name for (name,) in rows(home, "runs.db", "SELECT DISTINCT run_id FROM run_tags")} == ids
    assert not rows(home, "runs/index.db", "SELECT 1 FROM pragma_freelist_count WHERE freelist_count > 0")
    assert pruned(nights, left(2, 3)) == ForgottenRuns(0, 5)
    with open_instance(home) as instance:
        keys = {key.path[-1] for key in instance.get_asset_keys()}
        shown = instance.get_latest_materialization_event(dg.AssetKey(["small", "cases"]))
    assert keys >= {"raw_dataset", "cases", "generations", "statistics", "trends"}
    assert shown is not None
    assert shown.run_id == run_id(0, OWN)


@pytest.mark.always
def test_of_a_suite_that_is_gone_nothing_is_shown_any_more(nights: Lab) -> None:
    assert pruned(nights, left(3, suites=("other",))).runs == 6
    assert runs(nights.home) == {(3, OWN), (3, COMPARED)}
    with open_instance(nights.home) as instance:
        assert instance.get_asset_keys() == []
        assert pruned(nights, left(3, suites=("other",))).runs == 0


@pytest.mark.parametrize(
    ("job", "status", "tags", "goes"),
    [
        ("suite_small", dg.DagsterRunStatus.FAILURE, {"eval_pipeline/eval_date": "2020-01-01"}, True),
        ("__ASSET_JOB", dg.DagsterRunStatus.CANCELED, {"eval_pipeline/eval_date/small": "2020-01-01"}, False),
        ("ingest_suites", dg.DagsterRunStatus.SUCCESS, {}, False),  # of today
        ("their_job", dg.DagsterRunStatus.SUCCESS, {"their/date": "2020-01-01"}, False),
        ("suite_small", dg.DagsterRunStatus.STARTED, {"eval_pipeline/eval_date": "2020-01-01"}, False),
        ("suite_small", dg.DagsterRunStatus.QUEUED, {"eval_pipeline/eval_date": "2020-01-01"}, False),
        ("suite_small", dg.DagsterRunStatus.FAILURE, {"eval_pipeline/eval_date": "today"}, False),
    ],
)
def test_only_ended_runs_of_ours_go(
    job: str, status: dg.DagsterRunStatus, tags: dict[str, str], goes: bool, small: Lab
) -> None:
    with open_instance(small.home) as instance:
        origin = job_origin(job)  # queued runs need one
        instance.add_run(dg.DagsterRun(job, str(uuid4()), status=status, tags=tags, remote_job_origin=origin))
    assert pruned(small, left(0)).runs == goes
    with open_instance(small.home) as instance:
        assert instance.get_runs_count() == (not goes)


def test_who_reads_a_file_is_not_disturbed_and_a_pruning_that_was_killed_is_made_up_for(nights: Lab) -> None:
    home, killed = nights.home, str(uuid4())
    place = home.dagster / "history" / "runs"
    (place / f"{killed}.db").write_bytes((place / f"{run_id(0, OWN)}.db").read_bytes())  # its row is gone already
    (place / "theirs.db").touch()
    with closing(sqlite3.connect(place / "index.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM event_logs").fetchone()
        done = pruned(nights, left(3))
        assert reader.execute("SELECT count(*) FROM event_logs").fetchone()[0] > 0
    assert done.runs == 5
    assert str(place / "index.db") in done.left
    assert killed not in files(home)
    assert (place / "theirs.db").exists()
    assert pruned(nights, left(3)) == ForgottenRuns(0, 3)
    with open_instance(home) as instance:
        instance.add_run(dg.DagsterRun("their_job", str(uuid4()), status=dg.DagsterRunStatus.STARTED))
    assert pruned(nights, left(3)).left == "a run is under way"


def test_old_ticks_go(small: Lab) -> None:
    origin = job_origin("x").repository_origin.get_instigator_origin("nightly")
    state = InstigatorState(
        origin, InstigatorType.SCHEDULE, InstigatorStatus.RUNNING, ScheduleInstigatorData("0 2 * * *")
    )
    days = [datetime(2026, 3, day, tzinfo=UTC).timestamp() for day in (1, 2, 3)]
    with open_instance(small.home) as instance:
        instance.add_instigator_state(state)
        for day in days:
            own = (state.instigator_origin_id, state.name, InstigatorType.SCHEDULE, TickStatus.SUCCESS, day)
            instance.create_tick(TickData(*own, run_ids=[], selector_id=state.selector_id))
    found = Remaining(frozenset(), frozenset({("puppet", date(2026, 3, 2))}), date(2026, 3, 2))
    pruned(small, found)
    with open_instance(small.home) as instance:
        ticks = instance.get_ticks(state.instigator_origin_id, state.selector_id)
    assert sorted(tick.timestamp for tick in ticks) == days[1:]


def test_the_command_prunes_dagsters_files_unless_they_are_to_stay(nights: Lab) -> None:
    for count in (2, 3):
        nights.evaluate(day=night(count))
    assert remaining(nights.workspace(), 2) == left(2, 3)
    before = runs(nights.home)
    assert "0 runs of Dagster" in nights.cli("prune", "--keep", "2", "--no-dagster").out
    assert "3 runs of Dagster" in nights.cli("prune", "--keep", "2", "--dry-run").out
    assert runs(nights.home) == before
    assert "would remove 3 of 8 runs of Dagster" in nights.cli("doctor").out
    assert "3 runs of Dagster" in nights.cli("prune", "--keep", "2").out
    assert len(runs(nights.home)) == 5
