"""Retention in Dagster's storage: runs, events, logs and ticks go with the dates that they belong to.

The run that made what an asset shows of a partition stays, whatever its date: without it the asset would be missing.
What others have put there stays, too: jobs of their own, and a storage that is not Dagster's.
"""

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from uuid import UUID

import dagster as dg
from sqlalchemy import func, select

from eval_pipeline.chain.evaluation import INGESTING
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.home import Home
from eval_pipeline.core.system.days import day_of
from eval_pipeline.defs.assets.partitions import EVAL_DATE
from eval_pipeline.defs.automation.jobs import ALL, COMPARE, INGEST, suite_job_name
from eval_pipeline.defs.dagster_inside.running import PARTITION_NAME_TAG, InstanceRef
from eval_pipeline.defs.dagster_inside.storages import (
    AssetCheckExecutionsTable,
    SqlEventLogStorage,
    SqlEventLogStorageTable,
    SqliteEventLogStorage,
)
from eval_pipeline.defs.running.instance import PROCESS, open_instance, prepare
from eval_pipeline.defs.running.origin import TERMINAL
from eval_pipeline.defs.running.removing import write_anew
from eval_pipeline.operations.upkeep.pruning import Remaining
from eval_pipeline.state.place import state_place

_FILES = ("history/runs.db", "history/runs/index.db", "schedules/schedules.db")
_PATIENCE_S = 1.0
"""How long a file that others use is waited for: they go on at once, and the next pruning makes it smaller."""


@dataclass(frozen=True, slots=True)
class ForgottenRuns:
    """What has gone of Dagster's storage, or would go.

    Attributes:
        runs: number of runs that went.
        of: number of all runs that there were.
        left: why files are as large as they were; empty if they are not.
    """

    runs: int
    of: int
    left: str = ""


def prune_history(home: Home, remaining: Remaining, *, dry_run: bool) -> ForgottenRuns:
    """Removes the runs of dates that are no longer on record, with their events, logs and files, and the ticks of then.

    It may be killed at any time: the next one goes on. Processes that run or serve the home are not disturbed.

    Args:
        home: the home; in a database, the runs of all homes that use it are judged by its record.
        remaining: what stays on record.
        dry_run: only count.
    """
    if not state_place().has_dagster(home) or remaining.since is None:
        return ForgottenRuns(0, 0)
    with open_instance(home) as instance:
        events = instance.event_log_storage
        if not isinstance(events, SqlEventLogStorage):
            return ForgottenRuns(0, 0, "its storage is one of your own")
        records = instance.get_run_records()
        retired = _assets_of_gone_suites(instance, remaining)
        shown = _runs_shown(instance, events, retired)
        old = [
            record.dagster_run.run_id
            for record in records
            if record.dagster_run.run_id not in shown and _outlived(record, remaining)
        ]
        if dry_run:
            return ForgottenRuns(len(old), len(records))
        instance.wipe_assets(sorted(retired))
        logs = InstanceRef.from_dir(str(prepare(home))).compute_log_manager
        for run_id in old:
            logs.delete_logs(prefix=[run_id])
            with events.index_connection() as connection:
                checks = AssetCheckExecutionsTable
                connection.execute(checks.delete().where(checks.c.run_id == run_id))
            instance.delete_run(run_id)
        _purge_ticks(instance, remaining.since)
        files = list(_files_without_a_run(instance, events))
        busy = instance.get_runs_count(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
    for path in files:
        path.unlink(missing_ok=True)
    return ForgottenRuns(len(old), len(records), "a run is under way" if busy else _make_smaller(home))


def _outlived(record: dg.RunRecord, remaining: Remaining) -> bool:
    """Whether a run of ours has ended and belongs to no date of which anything is left."""
    run = record.dagster_run
    tags = run.tags
    ours = {EVAL_DATE, TERMINAL, PROCESS} & tags.keys() or run.job_name in {ALL, COMPARE, INGEST}
    if not run.is_finished or not (ours or run.job_name.startswith(suite_job_name(""))):
        return False
    told = {_date(text) for name, text in tags.items() if name.startswith(EVAL_DATE)} - {None}
    days = {day for day in told if day} or {day_of(record.create_timestamp.timestamp())}
    return not any(remaining.holds(tags.get(PARTITION_NAME_TAG), day) for day in days)


def _date(text: str) -> date | None:
    with suppress(ValueError):
        return date.fromisoformat(text)
    return None


def _assets_of_gone_suites(instance: dg.DagsterInstance, remaining: Remaining) -> set[dg.AssetKey]:
    """Returns the assets of suites of which there are neither files nor an evaluation."""
    keys = instance.get_asset_keys()
    gone = {key.path[0] for key in keys if list(key.path[1:]) == [INGESTING[0]]} - remaining.suites
    return {key for key in keys if key.path[0] in gone}


def _runs_shown(instance: dg.DagsterInstance, events: SqlEventLogStorage, gone: Collection[dg.AssetKey]) -> set[str]:
    """Returns the runs of which assets show what they made: the last of each partition."""
    log = SqlEventLogStorageTable
    keys = [key.to_string() for key in instance.get_asset_keys() if key not in gone]
    made = (dg.DagsterEventType.ASSET_MATERIALIZATION.value, dg.DagsterEventType.ASSET_OBSERVATION.value)
    last = select(func.max(log.c.id)).where(log.c.dagster_event_type.in_(made), log.c.asset_key.in_(keys))
    last = last.group_by(log.c.asset_key, log.c.partition)
    with events.index_connection() as connection:
        return {run_id for (run_id,) in connection.execute(select(log.c.run_id).where(log.c.id.in_(last)))}


def _purge_ticks(instance: dg.DagsterInstance, since: date) -> None:
    before = datetime.combine(since, time(), UTC).timestamp()
    for state in instance.all_instigator_state():
        instance.purge_ticks(state.instigator_origin_id, state.selector_id, before)


def _files_without_a_run(instance: dg.DagsterInstance, events: SqlEventLogStorage) -> Iterator[Path]:
    """Yields what SQLite has of runs that are gone: Dagster empties the file of each, and leaves it.

    Those on the disk are listed before the runs, as the file of a new run comes after its row.
    """
    if not isinstance(events, SqliteEventLogStorage):
        return
    there = list(Path(events.path_for_shard("index")).parent.iterdir())
    known = set(instance.run_storage.get_run_ids())
    for path in there:
        name = re.sub(r"\.db(-wal|-shm)?$", "", path.name)
        with suppress(ValueError):
            if str(UUID(name)) == name and name not in known:
                yield path


def _make_smaller(home: Home) -> str:
    """Lets SQLite give back what is free; returns what it could not do, e.g. while somebody reads."""
    if state_place().is_shared:
        return ""  # its own upkeep uses what is free again
    for path in (home.dagster / name for name in _FILES):
        try:
            if path.is_file():
                write_anew(path, _PATIENCE_S)
        except StoreError as error:
            return str(error)
    return ""
