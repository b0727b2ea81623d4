"""A guarded session on PostgreSQL: a role that may only read, one statement, a read-only transaction rolled back."""

import time
from typing import Any

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError, UnreachableError, of_postgres
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.live.places import LivePlace
from eval_pipeline.sandbox.sql.live.sessions import one_line, open_postgres, twice
from eval_pipeline.sandbox.sql.rows import SqlRows, fetch_within

_CURSOR = "eval_result"
_ENDING = ("57P01", "57P02", "57P03", "57P05", "25P03", "08")
"""SQLSTATEs (or their beginnings) of a session that the server ended."""


class GuardedPostgres:
    """Runs queries in one session; nothing remains of one query when the next one runs."""

    def __init__(self, place: LivePlace, limits: SqlLimits) -> None:
        """Keeps the arguments; opens no session yet."""
        self.place, self.limits = place, limits
        self._session: Any = None

    def close(self) -> None:
        """Closes the session."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def ping(self) -> None:
        """Checks in a new session that the server answers. Raises an UnreachableError if it does not."""
        self.close()
        self._opened()

    def query(self, sql: str, seconds: float | None = None) -> SqlRows:
        """Runs one SELECT; see `sessions.twice` for what happens if its session breaks.

        Args:
            sql: what a model wrote.
            seconds: time limit, kept by the server; default: that of the limits.

        Raises:
            SqlError: the query does not run.
            UnreachableError: the server does not answer.
        """
        left = self.limits.seconds if seconds is None else seconds
        return twice(lambda: self._once(sql, left), self.close, self.ping)

    def _opened(self) -> Any:
        if self._session is None or self._session.closed:
            self._session = open_postgres(
                self.place.dsn, prepare_threshold=None
            )  # DISCARD ALL forgets what is prepared
        return self._session

    def _once(self, sql: str, seconds: float) -> SqlRows:
        import psycopg

        session = self._opened()
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            try:
                session.execute(self._beginning(seconds))
                columns, rows = self._fetched(session, sql)
            finally:
                if not session.closed:  # what the query changed in its session goes, too: settings, locks
                    session.execute("ROLLBACK")
                    session.execute("DISCARD ALL")
        except psycopg.Error as error:
            raise self._told(error) from error
        except (ValueError, OverflowError, MemoryError) as error:  # a date that Python does not know
            raise SqlError(ErrorClass.VALUE, f"a value of the result cannot be read: {error}") from error
        return SqlRows(columns, rows, time.perf_counter() - wall, time.process_time() - cpu)

    def _beginning(self, seconds: float) -> str:
        from psycopg import sql

        settings = {
            "statement_timeout": str(max(int(seconds * 1000), 1)),
            "search_path": sql.Identifier(self.place.schema).as_string(None),
            "timezone": "UTC",
            "client_connection_check_interval": "1000",
        }
        told = "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in settings.items() if name != "search_path")
        return f"BEGIN READ ONLY; SET LOCAL search_path = {settings['search_path']}; {told}"

    def _fetched(self, session: Any, sql: str) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Fetches rows through a cursor: only a SELECT can have one, and `binary` allows only one statement."""
        with session.cursor() as cursor:
            cursor.execute(f"DECLARE {_CURSOR} NO SCROLL CURSOR FOR {_without_end(sql)}", binary=True)
            columns: tuple[str, ...] = ()

            def fetch(count: int) -> list[tuple[Any, ...]]:
                nonlocal columns
                cursor.execute(f"FETCH FORWARD {count} FROM {_CURSOR}")
                columns = tuple(column.name for column in cursor.description)
                found: list[tuple[Any, ...]] = cursor.fetchall()
                return found

            rows = fetch_within(fetch, self.limits)
        return columns, rows

    def _told(self, error: Any) -> Exception:
        import psycopg

        state, message = error.sqlstate, (error.diag.message_primary or one_line(error))
        if state is None or state.startswith(_ENDING):
            if isinstance(error, psycopg.DataError | psycopg.ProgrammingError | psycopg.NotSupportedError):
                return SqlError(ErrorClass.VALUE, f"a value of the result cannot be read: {one_line(error)}")
            return ConnectionError(message)
        if state in ("42P01", "3F000") and not self._is_there():
            return UnreachableError(f"the schema {self.place.schema} of {self.place.name} is no longer on the server")
        return of_postgres(state, message)

    def _is_there(self) -> bool:
        found = self._opened().execute("SELECT to_regnamespace(%s) IS NOT NULL", [self.place.schema]).fetchone()
        return bool(found and found[0])


def _without_end(sql: str) -> str:
    return sql.strip().rstrip(";")
