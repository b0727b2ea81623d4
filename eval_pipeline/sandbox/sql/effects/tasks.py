"""The task of a child process that runs a script on a private copy of a database."""

from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eval_pipeline.core.model import ErrorClass, Failed
from eval_pipeline.sandbox.sql.effects.duckdb_copy import PrivateDuckdb
from eval_pipeline.sandbox.sql.effects.postgres_copy import PrivatePostgres, ServerCopy
from eval_pipeline.sandbox.sql.effects.sqlite_copy import PrivateSqlite
from eval_pipeline.sandbox.sql.effects.state import (
    STORED,
    VIEW,
    Effects,
    ObjectChange,
    Thing,
    changed_names,
    effects_to_wire,
    fingerprint,
    without_clock,
)
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.live.sessions import open_postgres, twice
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline.sandbox.sql.tasks import connection_to, engine_of

Private = PrivateSqlite | PrivateDuckdb | PrivatePostgres
Copied = str | list[Any]
"""The path of a file, or a `ServerCopy` as JSON."""
_ENDS_ALL = (ErrorClass.TIMEOUT, ErrorClass.MEMORY)
"""Errors after which it is not worth the time to see what is left."""


def run_script(
    copied: Copied, setup: Sequence[str], statements: Sequence[str], checks: Sequence[str], limits: dict[str, Any]
) -> dict[str, Any]:
    """Runs a script on a private copy, then the checks, and returns what is different afterwards.

    Args:
        copied: what the copy is made from.
        setup: statements that make the copy what it is before.
        statements: run one after another until one fails.
        checks: each runs whether or not those before it failed, and only if the script did not fail.
        limits: the time is that of all statements, and again that of all checks.

    Raises:
        SqlError: the copy cannot be made, the setup does not run, or time or memory do not suffice.
        UnreachableError: the server does not answer.
    """
    told = SqlLimits.from_json(limits)
    if isinstance(copied, str):
        return _once(copied, setup, statements, checks, told)
    dsn = ServerCopy.from_json(copied).dsn

    def ping() -> None:
        open_postgres(dsn).close()

    return twice(lambda: _once(copied, setup, statements, checks, told), lambda: None, ping)


def _once(
    copied: Copied, setup: Sequence[str], statements: Sequence[str], checks: Sequence[str], told: SqlLimits
) -> dict[str, Any]:
    with closing(_private(copied, told, setup, (*statements, *checks))) as private:
        things = private.things()
        prints = _fingerprints(private, things)
        began = datetime.now(UTC)
        error = _failure(private, statements, told)
        private.settle()
        results = tuple(_checked(private, checks, told)) if error is None else ()
        private.settle()
        ended = datetime.now(UTC)
        after = private.things()
        later = _fingerprints(private, after)
        names = [*changed_names(things, after)]
        names += [name for name in later if name in prints and name not in names and later[name] != prints[name]]
        held = {name: _with_rows(private, name, after.get(name), told) for name in names}
    formerly = _former(copied, setup, names, things, told)
    changes = {
        name: ObjectChange(_unclocked(formerly.get(name), began, ended), _unclocked(held[name], began, ended))
        for name in names
    }
    results = tuple(
        one if isinstance(one, str) else SqlRows(one.columns, without_clock(one.rows, began, ended)) for one in results
    )
    return effects_to_wire(Effects(changes, error, results))


def _private(copied: Copied, limits: SqlLimits, setup: Sequence[str], statements: Sequence[str] = ()) -> Private:
    """Returns a private copy on which the setup has run; `statements` will run on it. Raises a SqlError."""
    made: Private
    if isinstance(copied, list):
        made = PrivatePostgres(ServerCopy.from_json(copied), limits)
    elif engine_of(path := Path(copied)) == "sqlite":
        made = PrivateSqlite(path, limits)
    else:
        made = PrivateDuckdb(path, limits, (*setup, *statements))
    if setup:
        failure = _failure(made, setup, limits)
        made.settle()
        if failure is not None:
            made.close()
            raise SqlError(failure.error_class, f"the setup does not run: {failure.message}")
    return made


def _fingerprints(private: Private, things: dict[str, Thing]) -> dict[str, tuple[int, int]]:
    return {name: fingerprint(private.chunks(name)) for name, thing in things.items() if thing.kind in STORED}


def _failure(private: Private, statements: Sequence[str], limits: SqlLimits) -> Failed | None:
    """Runs a script; returns why a statement failed."""
    left = limits.seconds
    for number, statement in enumerate(statements, 1):
        try:
            left -= _spent(private.run(statement, max(left, 0.001)), private)
        except SqlError as error:
            if error.error_class in _ENDS_ALL:
                raise
            where = f"statement {number} of {len(statements)}: " if len(statements) > 1 else ""
            return Failed(error.error_class, f"{where}{error.message}")
    return None


def _spent(rows: SqlRows, private: Private) -> float:
    return rows.seconds if isinstance(private, PrivatePostgres) else rows.cpu_seconds


def _checked(private: Private, checks: Sequence[str], limits: SqlLimits) -> "list[SqlRows | str]":
    left, found = limits.seconds, list[SqlRows | str]()
    for check in checks:
        try:
            rows = private.run(check, max(left, 0.001))
        except SqlError as error:
            if error.error_class in _ENDS_ALL:
                raise
            found.append(error.message)
            private.settle()
        else:
            found.append(rows)
            left -= _spent(rows, private)
    return found


def _with_rows(private: Private, name: str, thing: Thing | None, limits: SqlLimits) -> Thing | None:
    if thing is None or thing.kind not in (*STORED, VIEW):
        return thing
    try:
        return thing.with_rows(private.content(name))
    except SqlError as error:
        raise SqlError(error.error_class, f"{thing.kind} {name}, as it is afterwards: {error.message}") from error


def _former(
    copied: Copied, setup: Sequence[str], names: Sequence[str], things: dict[str, Thing], limits: SqlLimits
) -> dict[str, Thing]:
    """Returns what was there before, with the rows of tables: read again, as most tables do not change."""
    found = {name: things[name] for name in names if name in things}
    tables = [name for name, thing in found.items() if thing.kind in STORED]
    if not tables:
        return found
    if isinstance(copied, str) and not setup:
        return found | {name: found[name].with_rows(_in_file(Path(copied), name, limits)) for name in tables}
    with closing(_private(copied, limits, setup)) as private:
        private.things()
        return found | {name: found[name].with_rows(private.content(name)) for name in tables}


def _in_file(path: Path, name: str, limits: SqlLimits) -> SqlRows:
    file = connection_to(path, limits)
    try:
        return file.query(f"SELECT * FROM {_quoted(name)}")
    except SqlError:
        schema, _, inner = name.partition(".")
        if not inner:
            raise
        return file.query(f"SELECT * FROM {_quoted(schema)}.{_quoted(inner)}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _unclocked(thing: Thing | None, began: datetime, ended: datetime) -> Thing | None:
    if thing is None or not thing.rows:
        return thing
    return thing.with_rows(SqlRows(thing.columns, without_clock(thing.rows, began, ended)))
