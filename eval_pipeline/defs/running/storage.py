"""Dagster's SQLite storage, without its repeated overhead in short evaluations.

For each statement, Dagster creates an engine (so that the statement is compiled again) and opens and closes the file,
which causes a checkpoint. For each database, it makes alembic read its ninety migrations several times. In a short
evaluation this takes a third of all CPU time (benchmarks/README.md). Here, engines and connections are kept, and new
databases are copied from one at the newest revision. Files and tables are the same, so the webserver and the
daemon open them with Dagster's own classes, even while a run writes.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, MetaData, create_engine, event, inspect, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.pool import QueuePool, StaticPool

from eval_pipeline.core.system.private import touch
from eval_pipeline.defs.dagster_inside.storages import (
    ALEMBIC_SCRIPTS_LOCATION,
    AssetKeyTable,
    DagsterSqliteStorage,
    EventLogEntry,
    EventLogRecord,
    EventLogStorage,
    RunStorageSqlMetadata,
    ScheduleStorageSqlMetadata,
    SqlEventLogStorageMetadata,
    SqliteEventLogStorage,
    SqliteRunStorage,
    SqliteScheduleStorage,
    create_db_conn_string,
)
from eval_pipeline.store.durable import locked

INDEX_SHARD = "index"
OPEN_RUNS = 4
"""Databases of single runs that are kept open: a command may do hundreds of runs, one after the other."""
BUSY_SECONDS = 30


class ReusingEventLog(SqliteEventLogStorage):
    """The event log storage.

    It has one database shared by all runs (the index) and one for each run, each with its own engine.
    """

    def __init__(self, base_dir: str) -> None:
        os.makedirs(base_dir, exist_ok=True)
        index = _engine(create_db_conn_string(base_dir, INDEX_SHARD))
        is_new = _prepare(index, SqlEventLogStorageMetadata)
        self._engines = {INDEX_SHARD: index}
        self._transactions: ExitStack | None = None
        self._open: dict[str, Connection] = {}
        self._tables: frozenset[str] = frozenset()
        self._columns: frozenset[str] = frozenset()
        self._stored = 0
        super().__init__(base_dir)
        if is_new:
            self.reindex_events()
            self.reindex_assets()

    def has_table(self, table_name: str) -> bool:
        """Whether the index has the table; Dagster calls this before every access to partitions."""
        if table_name not in self._tables:
            self._tables = frozenset(inspect(self._engines[INDEX_SHARD]).get_table_names())
        return table_name in self._tables

    def _has_asset_key_col_on_connection(self, conn: Connection, column_name: str) -> bool:
        """Whether the index's table of assets has the column; Dagster asks before every event of an asset."""
        if column_name not in self._columns:
            self._columns = frozenset(column["name"] for column in inspect(conn).get_columns(AssetKeyTable.name))
        return column_name in self._columns

    def add_dynamic_partitions(self, partitions_def_name: str, partition_keys: Sequence[str]) -> None:
        """Adds the partitions that do not exist yet; another process may add the same ones at the same time."""
        try:
            super().add_dynamic_partitions(partitions_def_name, partition_keys)
        except IntegrityError:  # Dagster reads and inserts in two steps; now it reads what the other process has added
            super().add_dynamic_partitions(partitions_def_name, partition_keys)

    def dispose(self) -> None:
        """Closes the databases."""
        for engine in self._engines.values():
            engine.dispose()

    def _store_asset_event(self, conn: Connection, event: EventLogEntry, event_id: int) -> None:
        super()._store_asset_event(conn, event, event_id)
        self._stored = event_id

    @contextmanager
    def together(self) -> Iterator[None]:
        """Makes one transaction for each database of what this thread does within the block."""
        with ExitStack() as stack:
            self._open, self._transactions = {}, stack
            try:
                yield
            finally:
                self._transactions = None

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock:
            if self._transactions is not None:
                if shard not in self._open:
                    self._open[shard] = self._transactions.enter_context(self._engine_of(shard).begin())
                yield self._open[shard]
                return
            with self._engine_of(shard).begin() as connection:
                yield connection

    def _engine_of(self, shard: str) -> Engine:
        if shard not in self._engines:
            self._close_oldest()
            engine = _engine(self.conn_string_for_shard(shard))
            _prepare(engine, SqlEventLogStorageMetadata)
            self._engines[shard] = engine
        return self._engines[shard]

    def _close_oldest(self) -> None:
        """Makes room for one more database of a run by closing those that were opened first; none of them is in use."""
        runs = [shard for shard in self._engines if shard != INDEX_SHARD]
        for shard in runs[: max(0, len(runs) - OPEN_RUNS + 1)]:
            self._engines.pop(shard).dispose()


def stored(events: EventLogStorage, entry: EventLogEntry) -> EventLogRecord:
    """Returns the event of an asset that was stored just now, with its id."""
    if isinstance(events, ReusingEventLog):
        return EventLogRecord(events._stored, entry)
    key = entry.get_dagster_event().asset_key
    assert key is not None
    (record,) = events.get_asset_records([key])
    assert record.asset_entry.last_materialization_record is not None
    return record.asset_entry.last_materialization_record


def together(events: EventLogStorage) -> AbstractContextManager[None]:
    """Stores the events of the block in one transaction for each database, if the storage is of this module."""
    return events.together() if isinstance(events, ReusingEventLog) else nullcontext()


class _OneDatabase:
    """Common part of the run and schedule storages: one database with one engine."""

    NAME: ClassVar[str]
    METADATA: ClassVar[MetaData]
    _conn_string: str

    @classmethod
    def from_local(cls, base_dir: str, inst_data: Any = None) -> Self:
        """Opens the storage in a folder, creating it if needed."""
        os.makedirs(base_dir, exist_ok=True)
        storage: Any = cls(create_db_conn_string(base_dir, cls.NAME), inst_data)  # type: ignore[call-arg]
        if _prepare(storage._engine, cls.METADATA):
            storage.migrate()
            storage.optimize()
        return storage  # type: ignore[no-any-return]

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Opens a connection in a transaction."""
        with self._engine.begin() as connection:
            yield connection

    def dispose(self) -> None:
        """Closes the database."""
        self._engine.dispose()

    @cached_property
    def _engine(self) -> Engine:
        return _engine(self._conn_string)


class ReusingRuns(_OneDatabase, SqliteRunStorage):
    """The run storage."""

    NAME = "runs"
    METADATA = RunStorageSqlMetadata


class ReusingSchedules(_OneDatabase, SqliteScheduleStorage):
    """The schedule storage."""

    NAME = "schedules"
    METADATA = ScheduleStorageSqlMetadata


class ReusingSqliteStorage(DagsterSqliteStorage):
    """The complete storage, for `open_instance`."""

    def __init__(self, base_dir: str, inst_data: Any = None) -> None:
        # Dagster's own __init__ is skipped, because it would open everything in the slow way.
        super(DagsterSqliteStorage, self).__init__()  # type: ignore[no-untyped-call]
        self.base_dir = base_dir
        self._inst_data = inst_data
        self._run_storage = ReusingRuns.from_local(os.path.join(base_dir, "history", ""))
        self._event_log_storage = ReusingEventLog(os.path.join(base_dir, "history", "runs", ""))
        self._schedule_storage = ReusingSchedules.from_local(os.path.join(base_dir, "schedules"))
        self._schedule_storage.dispose()  # reopened on use; otherwise the instance would never close it

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> "ReusingSqliteStorage":
        """Creates the storage from Dagster's settings."""
        return cls(inst_data=inst_data, **config_value)


def _engine(connection_string: str) -> Engine:
    engine = create_engine(connection_string, poolclass=QueuePool, connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _set_up)
    return engine


def _set_up(connection: sqlite3.Connection, _: Any) -> None:
    # No fsync per event: a power failure may lose the last lines of Dagster's log, but a killed process loses none.
    connection.execute("PRAGMA synchronous=NORMAL")


def _prepare(engine: Engine, metadata: MetaData) -> bool:
    """Creates the tables of a new database, marked as the newest revision; returns whether it was new.

    A lock of our own makes other processes wait, because SQLite itself does not wait when the journal mode is changed.
    """
    path = Path(str(engine.url.database))
    touch(path)
    if _is_prepared(engine):
        return False
    with locked(path.parent / ".preparing.lock", BUSY_SECONDS), engine.connect() as connection:
        if _is_prepared(engine):
            return False
        _template(metadata).backup(connection.connection.driver_connection)
        connection.execute(text("PRAGMA journal_mode=WAL"))
    return True


@cache
def _template(metadata: MetaData) -> Any:
    """Returns a new database in memory: each run has one, and making its tables takes far longer than copying them."""
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    with engine.begin() as connection:
        metadata.create_all(connection)
        MigrationContext.configure(connection).stamp(_migrations(), "head")
    return engine.raw_connection().driver_connection


def _is_prepared(engine: Engine) -> bool:
    with engine.connect() as connection:
        return inspect(connection).has_table("alembic_version")


@cache
def _migrations() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", ALEMBIC_SCRIPTS_LOCATION)
    return ScriptDirectory.from_config(config)
