"""Withdraws what failed runs had planned and never began, so that only what itself failed is shown as failed.

Dagster shows as failed whatever a failed run had planned and not made. So one model version whose endpoint is gone
would turn all that comes after it red, also what another run has made, and nobody could clear that.
"""

from collections.abc import Iterable

import dagster as dg

from eval_pipeline.defs.dagster_inside.storages import (
    AssetCheckExecutionsTable,
    AssetKeyTable,
    EventLogStorage,
    SqlEventLogStorage,
    SqlEventLogStorageTable,
)

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
