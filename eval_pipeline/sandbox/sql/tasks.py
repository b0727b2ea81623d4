"""What a child process does for the runner: run a query, or time two queries against each other."""

from pathlib import Path
from typing import Any

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.duckdb_guard import GuardedDuckdb
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.sqlite_guard import GuardedSqlite
from eval_pipeline.sandbox.sql.wire import row_to_wire

Guarded = GuardedSqlite | GuardedDuckdb

_SQLITE_MAGIC = b"SQLite format 3\x00"
_MOST_OPEN = 8
_open: dict[tuple[Any, ...], Guarded] = {}


def engine_of(database: Path) -> str:
    """`sqlite` or `duckdb`, by the first bytes of a database file. Raises SqlError where it cannot be read."""
    try:
        with database.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise SqlError(ErrorClass.OTHER, f"the database {database} cannot be read: {error.strerror}") from error
    return "sqlite" if head == _SQLITE_MAGIC or not head else "duckdb"


def connection_to(database: Path, limits: SqlLimits) -> Guarded:
    """A guarded connection to a database file, opened once as long as the file does not change."""
    engine = engine_of(database)
    status = database.stat()
    key = (str(database.resolve()), status.st_mtime_ns, status.st_size)
    if key not in _open:
        while len(_open) >= _MOST_OPEN:
            _open.pop(next(iter(_open))).close()
        _open[key] = GuardedSqlite(database, limits) if engine == "sqlite" else GuardedDuckdb(database, limits)
    _open[key].limits = limits
    return _open[key]


def run_query(database: str, sql: str, limits: dict[str, Any]) -> dict[str, Any]:
    """Runs a query on a database file: columns, rows and the time it took. Raises SqlError."""
    found = connection_to(Path(database), SqlLimits.from_json(limits)).query(sql)
    return {
        "columns": found.columns,
        "rows": [row_to_wire(row) for row in found.rows],
        "seconds": found.seconds,
        "cpu_seconds": found.cpu_seconds,
    }


def time_alternating(database: str, first: str, second: str, runs: int, limits: dict[str, Any]) -> tuple[float, float]:
    """Least CPU seconds of each of two queries over some runs in turns. Raises SqlError."""
    connection = connection_to(Path(database), SqlLimits.from_json(limits))
    taken = [(connection.query(first).cpu_seconds, connection.query(second).cpu_seconds) for _ in range(runs)]
    return min(one for one, _ in taken), min(other for _, other in taken)
