"""A guarded session on MySQL or MariaDB: a role that may only read, one SELECT, a transaction that is rolled back."""

import re
import time

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError, of_mysql
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.live.places import LivePlace
from eval_pipeline.sandbox.sql.live.sessions import one_line, open_mysql, twice
from eval_pipeline.sandbox.sql.rows import SqlRows, fetch_within

_LOST = {2006, 2013, 2014, 2055, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1927, 4031}
"""Numbers of errors by which a session ends."""
_BLANK = re.compile(r"\s+|--[ \t][^\n]*(?:\n|\Z)|--\n|#[^\n]*(?:\n|\Z)|/\*(?![!M])(?s:.*?)\*/|\(")
_QUERY = re.compile(r"(?i)(?:SELECT|WITH|VALUES)\b")


class GuardedMysql:
    """Runs each query in a session of its own, so that no variables, settings or locks remain afterwards."""

    def __init__(self, place: LivePlace, limits: SqlLimits) -> None:
        """Keeps the arguments; opens no session yet."""
        self.place, self.limits = place, limits

    def close(self) -> None:
        """Does nothing, because there is no session between queries."""

    def ping(self) -> None:
        """Checks that the server answers. Raises an UnreachableError if it does not."""
        open_mysql(self.place.server, self.place.dsn).close()

    def query(self, sql: str, seconds: float | None = None) -> SqlRows:
        """Runs one SELECT; see `sessions.twice` for what happens if its session breaks.

        Args:
            sql: what a model wrote.
            seconds: time limit, kept by the server; default: that of the limits.

        Raises:
            SqlError: the query does not run.
            UnreachableError: the server does not answer.
        """
        if not is_query(sql):
            raise SqlError(ErrorClass.SANDBOX, "only a SELECT may run")
        left = self.limits.seconds if seconds is None else seconds
        return twice(lambda: self._once(sql, left), self.close, self.ping)

    def _once(self, sql: str, seconds: float) -> SqlRows:
        import pymysql
        from pymysql.cursors import SSCursor

        session = open_mysql(self.place.server, self.place.dsn, database=self.place.schema)
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            with session.cursor() as cursor:
                cursor.execute(self._timeout(seconds))
                cursor.execute("SET time_zone = '+00:00'")
                cursor.execute("START TRANSACTION READ ONLY")
            # The rows stay on the server until they are fetched, so that a large result does not fill the memory.
            result = session.cursor(SSCursor)
            result.execute(sql)
            if result.description is None:
                raise SqlError(ErrorClass.SYNTAX, "there is no SELECT statement")
            columns = tuple(column[0] for column in result.description)
            rows = fetch_within(lambda count: list(result.fetchmany(count)), self.limits)
        except pymysql.err.Error as error:
            raise self._told(error) from error
        except (ValueError, OverflowError, MemoryError) as error:
            raise SqlError(ErrorClass.VALUE, f"a value of the result cannot be read: {error}") from error
        finally:
            session._force_close()  # type: ignore[attr-defined]  # `close` would first read all rows that are left
        return SqlRows(columns, rows, time.perf_counter() - wall, time.process_time() - cpu)

    def _timeout(self, seconds: float) -> str:
        if self.place.server == "mysql":
            return f"SET SESSION max_execution_time = {max(int(seconds * 1000), 1)}"
        return f"SET SESSION max_statement_time = {max(seconds, 0.001):.3f}"

    def _told(self, error: Exception) -> Exception:
        number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        if number in _LOST or not number:
            return ConnectionError(one_line(error))
        return of_mysql(number, one_line(error))


def is_query(sql: str) -> bool:
    """Returns whether a statement begins as a SELECT, WITH or VALUES, after comments and parentheses.

    MySQL has no way to ask this of the server. Comments that the server executes (`/*! … */`) are not skipped.
    """
    place = 0
    while found := _BLANK.match(sql, place):
        place = found.end()
    return _QUERY.match(sql, place) is not None
