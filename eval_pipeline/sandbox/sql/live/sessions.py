"""Opens sessions on servers, retries while a server cannot be reached, and explains in one sentence why it cannot."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from eval_pipeline.core.errors import MissingExtraError, UsageError
from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError, UnreachableError
from eval_pipeline.sandbox.sql.live.places import Server

if TYPE_CHECKING:
    import psycopg
    import pymysql

T = TypeVar("T")

CONNECT_S = 3
_PAUSES_S = (0.3, 1.0)
"""Pauses between the tries to open a session."""


def twice(once: Callable[[], T], after_a_loss: Callable[[], None], ping: Callable[[], None]) -> T:
    """Runs a query, and again if its session breaks.

    If that session breaks too although the server answers, the query counts as failed.

    Args:
        once: runs the query. Raises a ConnectionError if the session breaks.
        after_a_loss: called after a broken session.
        ping: checks that the server answers. Raises an UnreachableError if it does not.

    Raises:
        SqlError: the query broke both sessions.
    """
    for _ in range(2):
        try:
            return once()
        except ConnectionError:
            after_a_loss()
    ping()
    raise SqlError(ErrorClass.OTHER, "the query ended its session on the server, twice")


def open_postgres(dsn: str, **settings: Any) -> "psycopg.Connection[tuple[Any, ...]]":
    """Opens a session on PostgreSQL; each statement is its own transaction.

    Args:
        dsn: as libpq reads it, `postgresql://role:password@host:port/database` or `host=… dbname=…`.
        settings: further settings of libpq.

    Raises:
        UnreachableError: no session can be opened.
        MissingExtraError: the driver is not installed.
        UsageError: the address is malformed.
    """
    try:
        import psycopg
    except ImportError as error:
        raise _missing("psycopg") from error
    try:
        psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        raise UsageError("the address of PostgreSQL is malformed: expected postgresql://role@host/database") from error

    def connect() -> "psycopg.Connection[tuple[Any, ...]]":
        return psycopg.connect(
            dsn, autocommit=True, connect_timeout=CONNECT_S, client_encoding="UTF8", application_name="eval", **settings
        )

    return _patiently(connect, psycopg.OperationalError, "PostgreSQL")


def open_mysql(server: Server, dsn: str, **settings: Any) -> "pymysql.Connection[Any]":
    """Opens a session on MySQL or MariaDB; each statement is its own transaction.

    Args:
        server: the kind of server, for messages.
        dsn: `mysql://role:password@host:port`, or with `?unix_socket=/path` for a socket. Nothing is encrypted unless
            `?ssl_ca=FILE` names the certificate authority.
        settings: further settings of PyMySQL.

    Raises:
        UnreachableError: no session can be opened.
        MissingExtraError: the driver is not installed.
        UsageError: the address is malformed.
    """
    try:
        import pymysql
    except ImportError as error:
        raise _missing("pymysql") from error
    told = _mysql_address(dsn) | settings

    def connect() -> "pymysql.Connection[Any]":
        return pymysql.connect(autocommit=True, connect_timeout=CONNECT_S, charset="utf8mb4", use_unicode=True, **told)

    return _patiently(connect, pymysql.err.OperationalError, "MySQL" if server == "mysql" else "MariaDB")


def _mysql_address(dsn: str) -> dict[str, Any]:
    try:
        parts = urlsplit(dsn)
        port, further = parts.port, parse_qs(parts.query, strict_parsing=bool(parts.query))
    except ValueError as error:
        raise _malformed() from error
    unknown = set(further) - {"unix_socket", "ssl_ca"}
    if parts.scheme not in ("mysql", "mariadb") or parts.username is None or unknown:
        raise _malformed()
    told: dict[str, Any] = {"user": unquote(parts.username), "password": unquote(parts.password or "")}
    if "unix_socket" in further:
        told["unix_socket"] = further["unix_socket"][0]
    else:
        told |= {"host": parts.hostname or "127.0.0.1", "port": port or 3306}
    if "ssl_ca" in further:
        told |= {"ssl_ca": further["ssl_ca"][0], "ssl_verify_cert": True, "ssl_verify_identity": True}
    return told


def _malformed() -> UsageError:
    return UsageError(
        "the address of MySQL or MariaDB is malformed: expected mysql://role:password@host:port or "
        "mysql://role@/?unix_socket=/path"
    )


def _missing(package: str) -> MissingExtraError:
    return MissingExtraError(
        f"{package} is not installed: `pip install 'eval-pipeline[engines]'` adds what live engines need"
    )


def _patiently(connect: Callable[[], T], expected: type[Exception], what: str) -> T:
    for pause in (*_PAUSES_S, None):
        try:
            return connect()
        except expected as error:
            if pause is None:
                raise UnreachableError(f"{what} cannot be reached: {one_line(error)}") from None
            time.sleep(pause)
    raise AssertionError("unreachable")


def one_line(error: BaseException) -> str:
    """Returns the message of a driver's error in one line, without the number that PyMySQL puts before it."""
    arguments = error.args
    text = str(arguments[1]) if len(arguments) == 2 and isinstance(arguments[0], int) else str(error)
    return " ".join(text.split()) or type(error).__name__
