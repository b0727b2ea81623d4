"""What went wrong with a query, as one of the error classes."""

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.error_classes import DUCKDB


class SqlError(Exception):
    """A query that did not run; the message is the engine's, or one sentence."""

    def __init__(self, error_class: ErrorClass, message: str) -> None:
        super().__init__(message)
        self.error_class = error_class
        self.message = message


class SqlFaultError(RuntimeError):
    """A fault in the code of a task, not in the query; the message ends with its trace."""


# The classes of sqlite3 say little, so its messages are looked at; in this order.
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
    """The error of a query that DuckDB refused."""
    message = str(error).strip() or type(error).__name__
    if isinstance(error, MemoryError):
        return SqlError(ErrorClass.MEMORY, "the query needs more memory than it may have")
    if "attached in read-only mode" in message:
        return SqlError(ErrorClass.SANDBOX, message)
    found = next((DUCKDB[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in DUCKDB), None)
    return SqlError(found or ErrorClass.OTHER, message)


def of_sqlite(error: BaseException) -> SqlError:
    """The error of a query that SQLite refused."""
    message = str(error).strip() or type(error).__name__
    if isinstance(error, MemoryError):
        return SqlError(ErrorClass.MEMORY, "the query needs more memory than it may have")
    lowered = message.lower()
    for error_class, phrases in _SQLITE:
        if any(phrase in lowered for phrase in phrases):
            return SqlError(error_class, message)
    return SqlError(ErrorClass.OTHER, message)
