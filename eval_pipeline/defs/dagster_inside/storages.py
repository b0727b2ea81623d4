"""Storages and what they keep of Dagster that are not public."""

from dagster._core.event_api import EventLogRecord
from dagster._core.events.log import EventLogEntry
from dagster._core.storage.base_storage import DagsterStorage
from dagster._core.storage.event_log import EventLogStorage, SqlEventLogStorage
from dagster._core.storage.event_log.schema import (
    AssetCheckExecutionsTable,
    AssetKeyTable,
    SqlEventLogStorageMetadata,
    SqlEventLogStorageTable,
)
from dagster._core.storage.event_log.sqlite import SqliteEventLogStorage
from dagster._core.storage.noop_compute_log_manager import NoOpComputeLogManager
from dagster._core.storage.runs import RunStorage
from dagster._core.storage.runs.schema import RunStorageSqlMetadata
from dagster._core.storage.runs.sqlite import SqliteRunStorage
from dagster._core.storage.schedules import ScheduleStorage
from dagster._core.storage.schedules.schema import ScheduleStorageSqlMetadata
from dagster._core.storage.schedules.sqlite import SqliteScheduleStorage
from dagster._core.storage.sql import ALEMBIC_SCRIPTS_LOCATION, create_engine
from dagster._core.storage.sqlite import create_db_conn_string
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClass, ConfigurableClassData

__all__ = [
    "ALEMBIC_SCRIPTS_LOCATION",
    "AssetCheckExecutionsTable",
    "AssetKeyTable",
    "ConfigurableClass",
    "ConfigurableClassData",
    "DagsterSqliteStorage",
    "DagsterStorage",
    "EventLogEntry",
    "EventLogRecord",
    "EventLogStorage",
    "NoOpComputeLogManager",
    "RunStorage",
    "RunStorageSqlMetadata",
    "ScheduleStorage",
    "ScheduleStorageSqlMetadata",
    "SqlEventLogStorage",
    "SqlEventLogStorageMetadata",
    "SqlEventLogStorageTable",
    "SqliteEventLogStorage",
    "SqliteRunStorage",
    "SqliteScheduleStorage",
    "create_db_conn_string",
    "create_engine",
]
