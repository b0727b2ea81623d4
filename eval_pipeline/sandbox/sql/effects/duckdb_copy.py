"""A private copy of a DuckDB database in memory."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from eval_pipeline.sandbox.sql.duckdb_guard import GuardedDuckdb
from eval_pipeline.sandbox.sql.effects.state import (
    CHECK,
    DEFAULT,
    FUNCTION,
    SCHEMA,
    SEQUENCE,
    TABLE,
    TYPE,
    VIEW,
    Thing,
    kind_of_type,
    names,
    normal,
)
from eval_pipeline.sandbox.sql.errors import of_duckdb
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.rows import SqlRows

_KINDS = frozenset("SELECT INSERT UPDATE DELETE MERGE_INTO CREATE CREATE_FUNC ALTER DROP TRANSACTION".split())
_RULE = "only statements that read, change or define data may run"
_CATALOGUE = "system.main."
"""A script may make functions with the names of the catalogue's."""
_MINE = "database_name = 'memory'"
_MACROS = re.compile(r"(?i)MACRO|FUNCTION|SCHEMA")
_OTHERS = (
    (FUNCTION, "function_name, macro_definition", "functions"),
    (SEQUENCE, "sequence_name, ''", "sequences"),
    (TYPE, "type_name, ''", "types"),
)


class PrivateDuckdb(GuardedDuckdb):
    """A copy in memory that scripts may change; files, settings and extensions are locked."""

    def __init__(self, path: Path, limits: SqlLimits, statements: Sequence[str] = ()) -> None:
        """Copies a file. Raises a SqlError if it cannot be read or is too large.

        Args:
            path: the file.
            limits: limits of the scripts.
            statements: all that will run; macros are listed only if one of these may change them, because it takes
                longer than everything else.
        """
        super().__init__(None, limits, copied=path)
        self._lists_macros = any(map(_MACROS.search, statements))
        self._addresses: dict[str, str] = {}

    def run(self, statement: str, seconds: float) -> SqlRows:
        """Runs one statement of a script. Raises a SqlError."""
        return self.guarded(lambda: self.fetched(self.one_of(statement, _KINDS, _RULE)), seconds)

    def settle(self) -> None:
        """Rolls back what was not committed, as the engine does at the end of a session."""
        import duckdb

        try:
            self.connection.execute("ROLLBACK")
        except duckdb.Error:  # no transaction is open
            return

    def things(self) -> dict[str, Thing]:
        """Returns everything that scripts can define, without rows."""
        columns = self._by_table("duckdb_columns", "column_name, data_type, is_nullable, column_default")
        constraints = self._by_table(
            "duckdb_constraints",
            "constraint_type, constraint_column_names, expression, referenced_table, referenced_column_names",
        )
        indexes = self._by_table("duckdb_indexes", "is_unique, expressions")
        found = {}
        for place in self._asked(f"SELECT schema_name, table_name FROM {_CATALOGUE}duckdb_tables() WHERE {_MINE}"):
            found[self._named(*place)] = _table(*(rows.get(place, []) for rows in (columns, constraints, indexes)))
        for schema, name, text in self._asked(
            f"SELECT schema_name, view_name, sql FROM {_CATALOGUE}duckdb_views() WHERE {_MINE}"
        ):
            found[self._named(schema, name)] = Thing(VIEW, definition=text)
        for kind, what, which in _OTHERS[not self._lists_macros :]:
            for schema, name, text in self._asked(
                f"SELECT schema_name, {what} FROM {_CATALOGUE}duckdb_{which}() WHERE {_MINE}"
            ):
                found[f"{kind} {self._named(schema, name)}"] = Thing(kind, definition=text or "")
        for (name,) in self._asked(
            f"SELECT schema_name FROM {_CATALOGUE}duckdb_schemas() "
            f"WHERE {_MINE} AND NOT internal AND schema_name <> 'main'"
        ):
            found[f"{SCHEMA} {name.lower()}"] = Thing(SCHEMA)
        return found

    def chunks(self, name: str) -> Iterator[tuple[Any, ...]]:
        """Yields the rows of a table."""
        import duckdb

        try:
            self.connection.execute(f"SELECT * FROM {self._addresses[name]}")
            while chunk := self.connection.fetchmany(1000):
                yield from chunk
        except (duckdb.Error, MemoryError, ValueError, RuntimeError) as error:
            raise of_duckdb(error) from error

    def content(self, name: str) -> SqlRows:
        """Returns the rows of a table or view within the limits. Raises a SqlError."""
        return self.run(f"SELECT * FROM {self._addresses[name]}", self.limits.seconds)

    def _by_table(self, catalogue: str, what: str) -> dict[tuple[str, str], list[tuple[Any, ...]]]:
        found: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
        for schema, table, *row in self._asked(
            f"SELECT schema_name, table_name, {what} FROM {_CATALOGUE}{catalogue}() WHERE {_MINE}"
        ):
            found.setdefault((schema, table), []).append(tuple(row))
        return found

    def _named(self, schema: str, name: str) -> str:
        """Returns a name as `things` has it; what is read of it is not a temporary table that hides it."""
        found = name.lower() if schema == "main" else f"{schema}.{name}".lower()
        self._addresses[found] = f"memory.{_quoted(schema)}.{_quoted(name)}"
        return found

    def _asked(self, sql: str) -> list[tuple[Any, ...]]:
        import duckdb

        try:
            return self.connection.execute(sql).fetchall()
        except duckdb.Error as error:
            raise of_duckdb(error) from error


def _table(
    columns: Sequence[tuple[Any, ...]], constraints: Sequence[tuple[Any, ...]], indexes: Sequence[tuple[Any, ...]]
) -> Thing:
    key = tuple(c.lower() for kind, parts, *_ in constraints if kind == "PRIMARY KEY" for c in parts)
    rules = {f"type {names([column])} {kind_of_type(declared)}" for column, declared, *_ in columns}
    rules |= {f"not null {names([c])}" for c, _, nullable, _ in columns if not nullable and c.lower() not in key}
    rules |= {f"{DEFAULT}{names([c])} {normal(default)}" for c, *_, default in columns if default is not None}
    for kind, parts, expression, other, targets in constraints:
        if kind in ("PRIMARY KEY", "UNIQUE"):
            rules.add(f"{kind.lower()} {names(sorted(part.lower() for part in parts))}")
        elif kind == "FOREIGN KEY":
            rules.add(f"foreign key {names(parts)} references {other.lower()} {names(targets)}")
        elif kind == "CHECK":
            rules.add(f"{CHECK}{normal(expression)}")
    for unique, text in indexes:
        inner = [part.strip(" '\"").lower() for part in text.strip("[]").split(",")]
        rules.add(f"unique {names(sorted(inner))}" if unique else f"index {names(inner)}")
    return Thing(TABLE, tuple(c.lower() for c, *_ in columns), rules=frozenset(rules))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
