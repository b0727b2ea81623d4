"""Checks that the role for model-written queries can do nothing on a server but read (docs/sql.md)."""

import re
from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache

from eval_pipeline.core.errors import UsageError
from eval_pipeline.sandbox.sql.live.places import Server, dsn_of, variable
from eval_pipeline.sandbox.sql.live.sessions import open_mysql, open_postgres

_POSTGRES = """
SELECT
    EXISTS (SELECT 1 FROM pg_roles WHERE rolsuper AND pg_has_role(current_user, oid, 'MEMBER')),
    EXISTS (
        SELECT 1 FROM pg_roles
        WHERE (rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls)
            AND pg_has_role(current_user, oid, 'MEMBER')
    ),
    has_database_privilege(current_database(), 'CREATE'),
    has_database_privilege(current_database(), 'TEMP'),
    EXISTS (SELECT 1 FROM pg_namespace WHERE nspname !~ '^pg_' AND has_schema_privilege(oid, 'CREATE')),
    EXISTS (
        SELECT 1 FROM pg_roles
        WHERE rolname IN ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program')
            AND pg_has_role(current_user, oid, 'MEMBER')
    )
"""
_POSTGRES_SAID = (
    "is a superuser",
    "may make databases or roles, replicate or pass by row security",
    "may CREATE schemas in the database",
    "may make TEMP tables",
    "may CREATE in a schema",
    "may use the server's files or programs",
)
_OF_WRITERS = frozenset(_POSTGRES_SAID[2:5])
"""What a role that runs scripts may do: everything of it is rolled back."""
_GRANT = re.compile(r"GRANT (?P<rights>.+?) ON (?P<what>.+?) TO ")
_HARMLESS = {"USAGE", "SELECT", "SHOW VIEW"}


def reader_problems(server: Server, dsn: str) -> list[str]:
    """Returns, as verb phrases, what the role of an address may do although a role for model-written queries must not.

    Raises:
        EvalError: the server cannot be queried.
    """
    return list(_of_postgres(dsn) if server == "postgres" else _of_mysql(server, dsn))


def _of_postgres(dsn: str) -> Iterator[str]:
    with closing(open_postgres(dsn)) as session:
        found = session.execute(_POSTGRES).fetchone()
    assert found is not None
    yield from (said for may, said in zip(found, _POSTGRES_SAID, strict=True) if may)


def _of_mysql(server: Server, dsn: str) -> Iterator[str]:
    with closing(open_mysql(server, dsn)) as session, session.cursor() as cursor:
        cursor.execute("SHOW GRANTS")
        lines = [str(line) for (line,) in cursor.fetchall()]
    yield from grant_problems(lines)


def grant_problems(lines: list[str]) -> Iterator[str]:
    """Yields the rights in lines of SHOW GRANTS that go beyond SELECT on the databases of suites."""
    for line in lines:
        found = _GRANT.match(line)
        if found is None:
            yield f"has a further role ({line.split(' TO ')[0]})"
            continue
        rights = {right.strip().split(" (")[0] for right in re.split(r",(?![^(]*\))", found["rights"])}
        what = found["what"].replace("`", "").replace("\\", "")
        if beyond := sorted(rights - _HARMLESS):
            yield f"has the rights {', '.join(beyond)} on {what}"
        if "SELECT" in rights and what.split(".")[0] in ("*", "%", "mysql"):
            yield f"may read {what}, where passwords are kept"
        if "WITH GRANT OPTION" in line:
            yield f"may give away its rights on {what}"


@lru_cache(maxsize=16)
def _checked(server: Server, dsn: str) -> None:
    if problems := reader_problems(server, dsn):
        raise UsageError(
            f"the role in {variable(server, 'READER')} {problems[0]}, "
            "but model-written queries may only read (docs/sql.md)"
        )


def checked_reader(server: Server) -> str:
    """Returns the address of the role that runs queries. Its rights are checked once in each process.

    Raises:
        UsageError: the address is not set, or the role may do more than read.
        UnreachableError: the server does not answer.
    """
    dsn = dsn_of(server, "READER")
    _checked(server, dsn)
    return dsn


def writer_problems(dsn: str) -> list[str]:
    """Returns, as verb phrases, what keeps the role of an address on PostgreSQL from running scripts that change data.

    It may do what it likes in a database of its own, since everything is rolled back, but nothing elsewhere.

    Raises:
        EvalError: the server cannot be queried.
    """
    with closing(open_postgres(dsn)) as session:
        found = session.execute(_POSTGRES).fetchone()
    assert found is not None
    may = {said for has, said in zip(found, _POSTGRES_SAID, strict=True) if has}
    problems = [said for said in _POSTGRES_SAID if said in may - _OF_WRITERS]
    return problems if _POSTGRES_SAID[2] in may else [*problems, "may not CREATE schemas in its database"]


@lru_cache(maxsize=4)
def _checked_writer(dsn: str) -> None:
    if problems := writer_problems(dsn):
        told = f"the role in {variable('postgres', 'WRITER')} {problems[0]}"
        raise UsageError(f"{told}, but scripts run in schemas of a database of their own (docs/sql.md)")


def checked_writer() -> str:
    """Returns the address of the role on PostgreSQL that runs scripts in transactions that are rolled back.

    Raises:
        UsageError: the address is not set, or the role may use files or what is not its own.
        UnreachableError: the server does not answer.
    """
    dsn = dsn_of("postgres", "WRITER")
    _checked_writer(dsn)
    return dsn
