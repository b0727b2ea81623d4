"""The schema of a database: tables, columns, keys and checks, whatever it was read from."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class SqlColumn:
    """A column; `type` is DuckDB's."""

    name: str
    type: str
    nullable: bool = True
    description: str = ""


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns whose values, where none is NULL, are found in the columns `references` of another table."""

    columns: tuple[str, ...]
    table: str
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table.

    Attributes:
        primary_key: its columns; empty without one.
        unique: further sets of columns that have no two equal rows, NULLs apart.
        checks: conditions on a row, in DuckDB's SQL.
    """

    name: str
    columns: tuple[SqlColumn, ...]
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    checks: tuple[str, ...] = ()

    def column(self, name: str) -> SqlColumn | None:
        """The column of that name, whatever its case."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)


@dataclass(frozen=True)
class SqlSchema:
    """The tables of a database. Names are compared without regard to case, as every supported engine does."""

    tables: tuple[SqlTable, ...]

    @cached_property
    def _by_name(self) -> dict[str, SqlTable]:
        return {table.name.lower(): table for table in self.tables}

    def table(self, name: str) -> SqlTable | None:
        """The table of that name, or None."""
        return self._by_name.get(name.lower())

    def as_mapping(self) -> dict[str, dict[str, str]]:
        """Types by column by table, as sqlglot's optimizer takes a schema."""
        return {table.name: {column.name: column.type for column in table.columns} for table in self.tables}

    def ddl(self) -> str:
        """`CREATE TABLE` statements for DuckDB, referenced tables first where they do not refer to each other."""
        return "\n".join(_create(table) for table in self.referenced_first())

    def only(self, names: "set[str]") -> "SqlSchema":
        """The named tables."""
        wanted = {name.lower() for name in names}
        return SqlSchema(tuple(table for table in self.tables if table.name.lower() in wanted))

    def with_ancestors(self, names: "set[str]") -> "SqlSchema":
        """The named tables and those that their foreign keys lead to."""
        wanted: set[str] = set()
        waiting = [name.lower() for name in names]
        while waiting:
            name = waiting.pop()
            table = self._by_name.get(name)
            if table is not None and name not in wanted:
                wanted.add(name)
                waiting += [key.table.lower() for key in table.foreign_keys]
        return self.only(wanted)

    def referenced_first(self) -> list[SqlTable]:
        """The tables, referenced ones before those that refer to them, where they do not refer to each other."""
        done: dict[str, SqlTable] = {}

        def visit(table: SqlTable, under_way: frozenset[str]) -> None:
            name = table.name.lower()
            if name in done or name in under_way:
                return
            for key in table.foreign_keys:
                if (parent := self.table(key.table)) is not None:
                    visit(parent, under_way | {name})
            done[name] = table

        for table in self.tables:
            visit(table, frozenset())
        return list(done.values())

    @classmethod
    def of(cls, schema: "SqlSchema | Mapping[str, Mapping[str, str]]") -> "SqlSchema":
        """A schema as it is, or from a plain mapping."""
        return schema if isinstance(schema, SqlSchema) else cls.from_mapping(schema)

    @classmethod
    def from_mapping(cls, tables: Mapping[str, Mapping[str, str]]) -> "SqlSchema":
        """From `{table: {column: type}}`; types of other dialects are mapped to DuckDB's."""
        from eval_pipeline.tracks.sql.schema_types import duckdb_type

        return cls(
            tuple(
                SqlTable(name, tuple(SqlColumn(column, duckdb_type(kind)) for column, kind in columns.items()))
                for name, columns in tables.items()
            )
        )

    @classmethod
    def from_ddl(cls, text: str, dialect: str = "duckdb") -> "SqlSchema":
        """From `CREATE TABLE` statements. Raises ValueError with one sentence where one cannot be read."""
        from eval_pipeline.tracks.sql.schema_readers import read_ddl

        return read_ddl(text, dialect)

    @classmethod
    def from_database(cls, path: "str | PathLike[str]") -> "SqlSchema":
        """From a SQLite or DuckDB file, opened read-only. Raises InputError where it is neither."""
        from eval_pipeline.tracks.sql.schema_readers import read_database

        return read_database(Path(path))

    @classmethod
    def from_spider(cls, entry: Mapping[str, Any]) -> "SqlSchema":
        """From an entry of Spider's `tables.json`. Raises ValueError with one sentence where it is malformed."""
        from eval_pipeline.tracks.sql.schema_readers import read_spider

        return read_spider(entry)


def quoted(name: str) -> str:
    """A name as an identifier of DuckDB or SQLite."""
    return '"' + name.replace('"', '""') + '"'


def _create(table: SqlTable) -> str:
    lines = [f"{quoted(c.name)} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in table.columns]
    if table.primary_key:
        lines.append(f"PRIMARY KEY ({_list(table.primary_key)})")
    lines += [f"UNIQUE ({_list(columns)})" for columns in table.unique]
    lines += [
        f"FOREIGN KEY ({_list(key.columns)}) REFERENCES {quoted(key.table)} ({_list(key.references)})"
        for key in table.foreign_keys
    ]
    lines += [f"CHECK ({check})" for check in table.checks]
    return f"CREATE TABLE {quoted(table.name)} (\n  " + ",\n  ".join(lines) + "\n);"


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(quoted(name) for name in names)
