"""Dagster's own SQLite storage, without what makes a short evaluation pay for the same thing over and over.

For each statement Dagster makes an engine, so that it is compiled anew, and opens and closes the file, which ends in a
checkpoint; for each database it has alembic read its ninety migrations, more than once. In a short evaluation that is a
third of all CPU time (docs/benchmarks.md). Here engines and connections are kept, and new databases are made at the
newest revision in one transaction. Files and tables are the same: the webserver and the daemon open them with Dagster's
own classes, also while a run writes.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from dagster._core.storage.event_log.schema import SqlEventLogStorageMetadata
from dagster._core.storage.event_log.sqlite import SqliteEventLogStorage
from dagster._core.storage.runs.schema import RunStorageSqlMetadata
from dagster._core.storage.runs.sqlite import SqliteRunStorage
from dagster._core.storage.schedules.schema import ScheduleStorageSqlMetadata
from dagster._core.storage.schedules.sqlite import SqliteScheduleStorage
from dagster._core.storage.sql import ALEMBIC_SCRIPTS_LOCATION
from dagster._core.storage.sqlite import create_db_conn_string
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from sqlalchemy import Connection, Engine, MetaData, create_engine, event, inspect, text
from sqlalchemy.pool import QueuePool

from eval_pipeline.core.private import touch
from eval_pipeline.store.durable import locked

INDEX_SHARD = "index"
BUSY_SECONDS = 30


class ReusingEventLog(SqliteEventLogStorage):
    """The event log: a database of what runs share, the index, and one for each run; with an engine for each."""

    def __init__(self, base_dir: str) -> None:
        os.makedirs(base_dir, exist_ok=True)
        index = _engine(create_db_conn_string(base_dir, INDEX_SHARD))
        is_new = _prepare(index, SqlEventLogStorageMetadata)
        self._engines = {INDEX_SHARD: index}
        self._tables: frozenset[str] = frozenset()
        super().__init__(base_dir)
        if is_new:
            self.reindex_events()
            self.reindex_assets()

    def has_table(self, table_name: str) -> bool:
        """Whether the index has the table; Dagster asks before every look at partitions."""
        if table_name not in self._tables:
            self._tables = frozenset(inspect(self._engines[INDEX_SHARD]).get_table_names())
        return table_name in self._tables

    def dispose(self) -> None:
        """Closes the databases."""
        for engine in self._engines.values():
            engine.dispose()

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock:
            if shard not in self._engines:
                engine = _engine(self.conn_string_for_shard(shard))
                _prepare(engine, SqlEventLogStorageMetadata)
                self._engines[shard] = engine
            with self._engines[shard].begin() as connection:
                yield connection


class _OneDatabase:
    """What the storages of runs and of schedules have in common here: one database with one engine."""

    NAME: ClassVar[str]
    METADATA: ClassVar[MetaData]
    _conn_string: str

    @classmethod
    def from_local(cls, base_dir: str, inst_data: Any = None) -> Self:
        """The storage in a folder; made where it is not there."""
        os.makedirs(base_dir, exist_ok=True)
        storage: Any = cls(create_db_conn_string(base_dir, cls.NAME), inst_data)  # type: ignore[call-arg]
        if _prepare(storage._engine, cls.METADATA):
            storage.migrate()
            storage.optimize()
        return storage  # type: ignore[no-any-return]

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """A connection in a transaction."""
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
    """All of it, for `open_instance`."""

    def __init__(self, base_dir: str, inst_data: Any = None) -> None:
        # Not its own __init__, which would open everything in Dagster's way.
        super(DagsterSqliteStorage, self).__init__()  # type: ignore[no-untyped-call]
        self.base_dir = base_dir
        self._inst_data = inst_data
        self._run_storage = ReusingRuns.from_local(os.path.join(base_dir, "history", ""))
        self._event_log_storage = ReusingEventLog(os.path.join(base_dir, "history", "runs", ""))
        self._schedule_storage = ReusingSchedules.from_local(os.path.join(base_dir, "schedules"))
        self._schedule_storage.dispose()  # opened again where it is needed; the instance would leave it open at its end

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> "ReusingSqliteStorage":
        """As Dagster makes it from its settings."""
        return cls(inst_data=inst_data, **config_value)


def _engine(connection_string: str) -> Engine:
    engine = create_engine(connection_string, poolclass=QueuePool, connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _set_up)
    return engine


def _set_up(connection: sqlite3.Connection, _: Any) -> None:
    # Not to the disk at every event: a power cut may cost the last lines of Dagster's log; a killed process loses none.
    connection.execute("PRAGMA synchronous=NORMAL")


def _prepare(engine: Engine, metadata: MetaData) -> bool:
    """Makes the tables of a database, marked as of the newest revision, where that is not done; says whether.

    Another process that does the same now waits, and finds nothing left to do. It waits for a lock of ours:
    SQLite waits for nobody when it changes the journal mode.
    """
    path = Path(str(engine.url.database))
    touch(path)
    if _is_prepared(engine):
        return False
    with locked(path.parent / ".preparing.lock", BUSY_SECONDS), engine.connect() as connection:
        if _is_prepared(engine):
            return False
        connection.execute(text("PRAGMA journal_mode=WAL"))
        connection.execute(text("BEGIN IMMEDIATE"))
        metadata.create_all(connection)
        MigrationContext.configure(connection).stamp(_migrations(), "head")
        connection.commit()
    return True


def _is_prepared(engine: Engine) -> bool:
    with engine.connect() as connection:
        return inspect(connection).has_table("alembic_version")


@cache
def _migrations() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", ALEMBIC_SCRIPTS_LOCATION)
    return ScriptDirectory.from_config(config)
