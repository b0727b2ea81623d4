"""Converts the errors of queries to error classes."""

from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model import ErrorClass
from eval_pipeline.core.system.stopped import note_stopped
from eval_pipeline.sandbox.returned.error_classes import DUCKDB


class SqlError(Exception):
    """A query did not run; the message is the engine's, or one sentence."""

    def __init__(self, error_class: ErrorClass, message: str) -> None:
        super().__init__(message)
        self.error_class = error_class
        self.message = message
        if error_class in (ErrorClass.TIMEOUT, ErrorClass.MEMORY):
            note_stopped()


class UnreachableError(EvalError):
    """A server does not answer, so nothing can be said about a query; the message is one sentence."""


class SqlFaultError(RuntimeError):
    """An error in the code of a task instead of the query; the message ends with the traceback."""


# The classes of sqlite3 say little, so its messages are compared with these, in this order.
_SQLITE = (
    (ErrorClass.TIMEOUT, ("interrupted",)),
    (
        ErrorClass.SANDBOX,
        ("not authorized", "authorization denied", "prohibited", "readonly database", "one statement at a time"),
    ),
    (ErrorClass.SYNTAX, ("syntax error", "unrecognized token", "incomplete input", "parser stack overflow")),
    (
        ErrorClass.COLUMN,
        (
            *("no such column", "no such table", "no such function", "ambiguous column", "misuse of", "no tables spec"),
            *("wrong number of arguments", "have the same number of result columns", "order by term", "group by term"),
            *("sub-select returns", "columns assigned", "circular reference", "row value", "has more than one column"),
            "values for columns",
        ),
    ),
    (ErrorClass.TYPE, ("datatype mismatch",)),
    (ErrorClass.MEMORY, ("out of memory", "too big", "too large", "too many", "too complex")),
    (ErrorClass.VALUE, ("overflow", "malformed json", "bad json", "json path", "out of range")),
)


def of_duckdb(error: BaseException) -> SqlError:
    """Converts an error of DuckDB."""
    message = str(error).strip() or type(error).__name__
    if isinstance(error, MemoryError):
        return SqlError(ErrorClass.MEMORY, "the query needs more memory than it may have")
    if "attached in read-only mode" in message:
        return SqlError(ErrorClass.SANDBOX, message)
    found = next((DUCKDB[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in DUCKDB), None)
    return SqlError(found or ErrorClass.OTHER, message)


def of_sqlite(error: BaseException) -> SqlError:
    """Converts an error of SQLite."""
    message = str(error).strip() or type(error).__name__
    if isinstance(error, MemoryError):
        return SqlError(ErrorClass.MEMORY, "the query needs more memory than it may have")
    lowered = message.lower()
    for error_class, phrases in _SQLITE:
        if any(phrase in lowered for phrase in phrases):
            return SqlError(error_class, message)
    return SqlError(ErrorClass.OTHER, message)


_POSTGRES_STATES = {"57014": ErrorClass.TIMEOUT, "42501": ErrorClass.SANDBOX, "25006": ErrorClass.SANDBOX}
_POSTGRES_STATES |= {"42601": ErrorClass.SYNTAX, "42804": ErrorClass.TYPE, "42846": ErrorClass.TYPE}
_POSTGRES_STATES |= {"54001": ErrorClass.SYNTAX, "0A000": ErrorClass.SANDBOX, "22P02": ErrorClass.TYPE}
_POSTGRES_CLASSES = {"42": ErrorClass.COLUMN, "22": ErrorClass.VALUE, "21": ErrorClass.VALUE, "53": ErrorClass.MEMORY}
_POSTGRES_CLASSES |= {"54": ErrorClass.MEMORY}


def of_postgres(state: str | None, message: str) -> SqlError:
    """Converts an error of PostgreSQL, by its SQLSTATE."""
    found = _POSTGRES_STATES.get(state or "") or _POSTGRES_CLASSES.get((state or "")[:2], ErrorClass.OTHER)
    return SqlError(found, message)


_MYSQL = (
    (ErrorClass.TIMEOUT, {1028, 1317, 1969, 3024}),
    (ErrorClass.SANDBOX, {1044, 1045, 1142, 1143, 1227, 1290, 1370, 1792, 1419, 4055}),
    (ErrorClass.SYNTAX, {1064, 1065, 1149, 1221, 1235, 1436}),
    (
        ErrorClass.COLUMN,
        {1046, 1051, 1052, 1054, 1055, 1056, 1060, 1066, 1109, 1111, 1140, 1146, 1222, 1241, 1248, 1305, 1582, 4078},
    ),
    (ErrorClass.VALUE, {1242, 1264, 1292, 1365, 1366, 1411, 1525, 1690, 4037, 4038}),
    (ErrorClass.MEMORY, {1037, 1038, 1041, 1104, 1114, 1153, 1301, 3636}),
    (ErrorClass.TYPE, {1210, 1270, 1367, 3854}),
)


def of_mysql(number: int, message: str) -> SqlError:
    """Converts an error of MySQL or MariaDB, by its number."""
    return SqlError(next((found for found, numbers in _MYSQL if number in numbers), ErrorClass.OTHER), message)
