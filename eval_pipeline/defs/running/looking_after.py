"""What `eval-pipeline dev` looks after while it serves: runs and commands that ended, and what they left undone."""

import logging
from collections.abc import Iterable

import dagster as dg

from eval_pipeline.core.home import Home
from eval_pipeline.defs.dagster_inside.storages import (
    AssetCheckExecutionsTable,
    AssetKeyTable,
    EventLogStorage,
    SqlEventLogStorage,
    SqlEventLogStorageTable,
)
from eval_pipeline.defs.running.instance import sweep_home
from eval_pipeline.defs.running.removing import forget
from eval_pipeline.defs.running.told.telling import OF_DEV, tell
from eval_pipeline.operations.upkeep.completing import compare_what_is_new, complete_left
from eval_pipeline.store.published.memo import store_status
from eval_pipeline.workspace.workspace import Workspace

_PLANNED, _BEGUN = dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED, dg.DagsterEventType.STEP_START


def withdraw(instance: dg.DagsterInstance, run_id: str) -> list[dg.AssetKey]:
    """Removes from what is known of assets that a run, which has ended, was to make those that it never began with.

    The log of the run keeps what it had planned, if it has a database of its own.
    """
    events = [entry.dagster_event for entry in instance.all_logs(run_id, of_type={_PLANNED, _BEGUN})]
    begun = {event.step_key for event in events if event is not None and event.event_type == _BEGUN}
    planned = (event for event in events if event is not None and event.event_type == _PLANNED)
    keys = {event.asset_key for event in planned if event.step_key not in begun and event.asset_key is not None}
    for key in keys:
        _forget(instance.event_log_storage, key, run_id)
    count_anew(instance, keys)
    return sorted(keys)


def count_anew(instance: dg.DagsterInstance, keys: Iterable[dg.AssetKey]) -> None:
    """Has Dagster count the partitions of assets anew: what it keeps adds failed ones and never takes them back."""
    events, assets = instance.event_log_storage, AssetKeyTable
    if isinstance(events, SqlEventLogStorage) and (names := [key.to_string() for key in keys]):
        with events.index_connection() as connection:
            connection.execute(assets.update().where(assets.c.asset_key.in_(names)).values(cached_status_data=None))


def _forget(events: EventLogStorage, key: dg.AssetKey, run_id: str) -> None:
    if not isinstance(events, SqlEventLogStorage):
        return  # the user's own storage
    (record,) = events.get_asset_records([key])
    made = record.asset_entry.last_materialization_record
    log, checks, assets, name = SqlEventLogStorageTable, AssetCheckExecutionsTable, AssetKeyTable, key.to_string()
    with events.index_connection() as connection:
        own = (log.c.asset_key == name, log.c.run_id == run_id, log.c.dagster_event_type == _PLANNED.value)
        connection.execute(log.delete().where(*own))
        own = (checks.c.asset_key == name, checks.c.run_id == run_id, checks.c.execution_status == "PLANNED")
        connection.execute(checks.delete().where(*own))
        last = (assets.c.asset_key == name, assets.c.last_run_id == run_id)
        connection.execute(assets.update().where(*last).values(last_run_id=made.run_id if made else None))


_MOST_RUNS = 200
"""Failed runs that are looked at, the newest."""

_log = logging.getLogger(__name__)


class LookingAfter:
    """Looks after one home, again and again."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._failed = set[str]()
        self._withdrawn = set[dg.AssetKey]()
        self._store: tuple[int, int] | None = None

    def look(self, instance: dg.DagsterInstance) -> None:
        """Ends runs of dead processes, which would block the queue, completes what they left, and tells of commands."""
        try:
            sweep_home(self._home, instance)
            self._withdraw(instance)
            for problem in [*complete_left(Workspace(self._home), name=OF_DEV, forget=forget), *self._compare()]:
                _log.warning("%s", problem)
            tell(self._home)
        except Exception as error:  # e.g. a busy database or a full disk: try again later
            _log.warning("cannot look for what commands and runs have left (%s)", error)

    def _withdraw(self, instance: dg.DagsterInstance) -> None:
        """Withdraws the plans of runs that have failed since the last look.

        Who counted partitions at that moment may have kept a count with the plans, so they are counted anew once more.
        """
        count_anew(instance, self._withdrawn)
        self._withdrawn.clear()
        failed = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]), limit=_MOST_RUNS)
        for run in failed:
            if run.run_id not in self._failed:
                self._withdrawn.update(withdraw(instance, run.run_id))
                self._failed.add(run.run_id)

    def _compare(self) -> list[str]:
        """Compares what is new in the store, if it has changed since the last look; returns a sentence a problem."""
        found = store_status(self._home.store)
        if found is None or found == self._store:
            return []
        problems = compare_what_is_new(Workspace(self._home), name=OF_DEV)
        self._store = found  # what was published meanwhile is looked at again
        return problems
