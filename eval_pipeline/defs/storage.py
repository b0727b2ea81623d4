"""Dagster's own SQLite storage, with connections that keep what SQLAlchemy learns.

Dagster makes an engine for each statement, so that each is compiled anew, and has alembic read its ninety migrations
for the database of each run. In a short evaluation that is a fourth of all CPU time (docs/benchmarks.md). Files and
tables are the same: the webserver and the daemon open them with Dagster's own classes.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dagster._core.storage.event_log.schema import SqlEventLogStorageMetadata
from dagster._core.storage.event_log.sqlite import SqliteEventLogStorage
from dagster._core.storage.runs.sqlite import SqliteRunStorage
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.pool import NullPool

INDEX_SHARD = "index"
BUSY_SECONDS = 30


def _engine(connection_string: str) -> Engine:
    return create_engine(connection_string, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS})


class ReusingEventLog(SqliteEventLogStorage):
    """The event log, with one engine a database."""

    def __init__(self, base_dir: str) -> None:
        self._engines: dict[str, Engine] = {}
        super().__init__(base_dir)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock:
            if shard not in self._engines:
                self._engines[shard] = self._open(shard)
            with self._engines[shard].connect() as connection, connection.begin():
                yield connection

    def _open(self, shard: str) -> Engine:
        is_new = not os.path.exists(self.path_for_shard(shard))
        engine = _engine(self.conn_string_for_shard(shard))
        if is_new and shard != INDEX_SHARD:
            self._create(engine)
        else:
            self._initdb(engine)
        return engine

    def _create(self, engine: Engine) -> None:
        """Makes the database of a run, at the revision that the index, made by alembic, is at."""
        with _engine(self.conn_string_for_shard(INDEX_SHARD)).connect() as index:
            revision = index.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
        SqlEventLogStorageMetadata.create_all(engine)
        with engine.connect() as connection:
            connection.execute(text("PRAGMA journal_mode=WAL"))
            connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
            connection.execute(text("INSERT INTO alembic_version VALUES (:revision)"), {"revision": revision})
            connection.commit()


class ReusingRuns(SqliteRunStorage):
    """The run storage, with one engine."""

    _shared: Engine | None = None

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """A connection in a transaction."""
        self._shared = self._shared or _engine(self._conn_string)
        with self._shared.connect() as connection, connection.begin():
            yield connection


class ReusingSqliteStorage(DagsterSqliteStorage):
    """All of it, for `open_instance`."""

    def __init__(self, base_dir: str, inst_data: Any = None) -> None:
        super().__init__(base_dir, inst_data)
        self._run_storage = ReusingRuns.from_local(os.path.join(base_dir, "history", ""))
        self._event_log_storage = ReusingEventLog(os.path.join(base_dir, "history", "runs", ""))

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> "ReusingSqliteStorage":
        """As Dagster makes it from its settings."""
        return cls(inst_data=inst_data, **config_value)
