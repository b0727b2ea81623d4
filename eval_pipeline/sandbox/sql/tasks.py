"""The tasks of a child process: run a query, or time two queries against each other."""

from typing import Any

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.duckdb_guard import GuardedDuckdb
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.live.mysql_guard import GuardedMysql
from eval_pipeline.sandbox.sql.live.places import DataPlace, LivePlace, dialect_of, place_from_text
from eval_pipeline.sandbox.sql.live.postgres_guard import GuardedPostgres
from eval_pipeline.sandbox.sql.sqlite_guard import GuardedSqlite
from eval_pipeline.sandbox.sql.wire import row_to_wire

Guarded = GuardedSqlite | GuardedDuckdb | GuardedPostgres | GuardedMysql

_SQLITE_MAGIC = b"SQLite format 3\x00"
_MOST_OPEN = 8
_open: dict[tuple[Any, ...], Guarded] = {}


def engine_of(database: DataPlace) -> str:
    """Returns the SQL dialect of a database; that of a file is recognised by its first bytes.

    Raises a SqlError if the file cannot be read.
    """
    if isinstance(database, LivePlace):
        return dialect_of(database)
    try:
        with database.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise SqlError(ErrorClass.OTHER, f"the database {database} cannot be read: {error.strerror}") from error
    return "sqlite" if head == _SQLITE_MAGIC or not head else "duckdb"


def connection_to(database: DataPlace, limits: SqlLimits) -> Guarded:
    """Returns a guarded connection to a place, which stays open as long as a file does not change."""
    key = _key(database)
    if key not in _open:
        while len(_open) >= _MOST_OPEN:
            _open.pop(next(iter(_open))).close()
        _open[key] = _guarded(database, limits)
    _open[key].limits = limits
    return _open[key]


def _key(database: DataPlace) -> tuple[Any, ...]:
    if isinstance(database, LivePlace):
        return (database,)
    engine_of(database)  # says why a file cannot be read
    status = database.stat()
    return str(database.resolve()), status.st_mtime_ns, status.st_size


def _guarded(database: DataPlace, limits: SqlLimits) -> Guarded:
    if isinstance(database, LivePlace):
        return GuardedPostgres(database, limits) if database.server == "postgres" else GuardedMysql(database, limits)
    return GuardedSqlite(database, limits) if engine_of(database) == "sqlite" else GuardedDuckdb(database, limits)


def ping(database: str) -> None:
    """Checks that a server answers. Raises an UnreachableError if it does not."""
    place = place_from_text(database)
    if isinstance(place, LivePlace):
        found = _guarded(place, SqlLimits())
        assert isinstance(found, GuardedPostgres | GuardedMysql)
        found.ping()
        found.close()


def run_query(database: str, sql: str, limits: dict[str, Any]) -> dict[str, Any]:
    """Runs a query at a place; returns columns, rows and the time it took. Raises a SqlError."""
    found = connection_to(place_from_text(database), SqlLimits.from_json(limits)).query(sql)
    return {
        "columns": found.columns,
        "rows": [row_to_wire(row) for row in found.rows],
        "seconds": found.seconds,
        "cpu_seconds": found.cpu_seconds,
    }


def time_alternating(database: str, first: str, second: str, runs: int, limits: dict[str, Any]) -> tuple[float, float]:
    """Returns the least CPU seconds of each of two queries over some alternating runs. Raises a SqlError."""
    connection = connection_to(place_from_text(database), SqlLimits.from_json(limits))
    taken = [(connection.query(first).cpu_seconds, connection.query(second).cpu_seconds) for _ in range(runs)]
    return min(one for one, _ in taken), min(other for _, other in taken)
