"""Dagster's storage in the database that the environment names, so that hosts see each other's runs and pools.

The settings that Dagster keeps, hands to its processes and shows hold no address and no password: each process reads
`EVAL_DATABASE_URL` itself. Connections are kept, since a new one for each statement would cost more than the statement,
and a database that is restarted is waited for.
"""

import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

from dagster import EventLogEntry
from sqlalchemy import URL, Engine, event
from sqlalchemy.exc import DBAPIError, OperationalError

from eval_pipeline.core.errors import UsageError
from eval_pipeline.defs.dagster_inside.storages import (
    ConfigurableClass,
    ConfigurableClassData,
    DagsterStorage,
    EventLogStorage,
    RunStorage,
    ScheduleStorage,
    create_engine,
)
from eval_pipeline.state.place import DATABASE_URL
from eval_pipeline_plugins.postgres.address import DatabaseAddress, database_address
from eval_pipeline_plugins.postgres.session import PATIENCE_S, Session, missing, settings

_MAKING = 0x6461_6773_7465_72
"""Key of the advisory lock under which one process at a time makes Dagster's tables."""
_TRIES = 5
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 2.0
_AWAY = ("refused", "starting up", "shutting down", "closed the connection", "could not receive data")
"""What libpq says of a server that may be back soon."""


class PostgresStorage(DagsterStorage, ConfigurableClass):
    """The complete storage, for `open_instance`."""

    def __init__(self, inst_data: Any = None) -> None:
        address = database_address()
        if address is None:
            raise UsageError(f"Dagster's storage is in a database, and {DATABASE_URL} is not set")
        try:
            from dagster_postgres import PostgresEventLogStorage, PostgresRunStorage, PostgresScheduleStorage
        except ImportError as error:
            raise missing() from error
        url = dagster_url(address)
        self._inst_data: ConfigurableClassData | None = inst_data
        with closing(Session(address)) as session:
            # The lock ends with the connection, if not before.
            session.run(lambda connection: connection.execute("SELECT pg_advisory_lock(%s)", (_MAKING,)).rowcount)
            self._run_storage = PostgresRunStorage(url)
            self._event_log_storage = PostgresEventLogStorage(url)
            self._schedule_storage = PostgresScheduleStorage(url)
        patience = Patience()
        storages: tuple[Any, ...] = (self._run_storage, self._event_log_storage, self._schedule_storage)
        for storage in storages:
            storage._engine.dispose()
            storage._engine = _engine(url, patience)
            storage.optimize_for_webserver = partial(_for_webserver, storage, url, patience)
        log: Any = self._event_log_storage
        log.store_event = _again(log.store_event, patience)
        super().__init__()  # type: ignore[no-untyped-call]

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        """The settings that this was made from."""
        return self._inst_data

    @property
    def run_storage(self) -> RunStorage:
        """The runs."""
        return self._run_storage

    @property
    def event_log_storage(self) -> EventLogStorage:
        """The events, and the slots of pools."""
        return self._event_log_storage

    @property
    def schedule_storage(self) -> ScheduleStorage:
        """What schedules and sensors have done."""
        return self._schedule_storage

    @property
    def run_storage_data(self) -> ConfigurableClassData | None:
        """None: the parts are made by this class only."""
        return None

    @property
    def event_storage_data(self) -> ConfigurableClassData | None:
        """None, as for runs."""
        return None

    @property
    def schedule_storage_data(self) -> ConfigurableClassData | None:
        """None, as for runs."""
        return None

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Returns Dagster's description of its settings: there are none."""
        return {}

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> "PostgresStorage":
        """Creates the storage from Dagster's settings."""
        return cls(inst_data=inst_data)


def dagster_url(address: DatabaseAddress) -> str:
    """Returns the address as SQLAlchemy takes it; Dagster's statements need psycopg 2."""
    from psycopg.conninfo import conninfo_to_dict

    # As libpq reads it: SQLAlchemy reads sockets, escapes and empty parts otherwise, and would go elsewhere.
    found = {name: str(value) for name, value in {**settings(), **conninfo_to_dict(address.url)}.items()}
    query = {name: value for name, value in found.items() if name not in {"user", "password", "dbname"}}
    url = URL.create("postgresql+psycopg2", found.get("user"), found.get("password"), database=found["dbname"])
    return url.set(query=query).render_as_string(hide_password=False)


def _engine(url: str, patience: "Patience", max_overflow: int = 20, pool_recycle: int = 3600) -> Engine:
    pool = {"pool_size": 1, "max_overflow": max_overflow, "pool_recycle": pool_recycle, "pool_pre_ping": True}
    engine = create_engine(url, isolation_level="AUTOCOMMIT", **pool)
    event.listen(engine, "do_connect", patience.connect)
    return engine


def _for_webserver(
    storage: Any, url: str, patience: "Patience", statement_timeout: int, pool_recycle: int, max_overflow: int
) -> None:
    """Bounds statements, in ms, as Dagster's own method does; its connections would not survive a restart."""
    from dagster_postgres.utils import set_pg_statement_timeout

    storage._engine.dispose()
    storage._engine = _engine(url, patience, max_overflow, pool_recycle)
    event.listen(storage._engine, "connect", lambda made, _: set_pg_statement_timeout(made, statement_timeout))


class Patience:
    """Waits for a server that is away, once: who has waited in vain does not wait anew for each of many statements.

    Attributes:
        ended: whether the last wait was in vain.
    """

    def __init__(self) -> None:
        self.ended = False

    def connect(self, dialect: Any, _: object, arguments: Any, named: Any) -> Any:
        """Connects, for SQLAlchemy's event `do_connect`."""
        give_up, pause = time.monotonic() + PATIENCE_S, _FIRST_PAUSE_S
        while True:
            try:
                connection = dialect.connect(*arguments, **named)
            except dialect.loaded_dbapi.OperationalError as error:
                away = any(said in str(error) for said in _AWAY)
                if not away or self.ended or time.monotonic() > give_up:
                    self.ended = away
                    raise
            else:
                self.ended = False
                return connection
            time.sleep(pause)
            pause = min(pause * 1.6, _LONGEST_PAUSE_S)


def _again(store: Callable[[EventLogEntry], None], patience: Patience) -> Callable[[EventLogEntry], None]:
    """Returns a function that stores an event again if the connection broke meanwhile; it may then be there twice."""

    def store_event(entry: EventLogEntry) -> None:
        for _ in range(_TRIES):
            try:
                return store(entry)
            except DBAPIError as error:
                if patience.ended or not (error.connection_invalidated or isinstance(error, OperationalError)):
                    raise
            time.sleep(_LONGEST_PAUSE_S / _TRIES)
        return store(entry)

    return store_event
