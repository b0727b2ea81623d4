"""The schema of a database, whatever its source."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from eval_pipeline.sql_equivalence.schema.parts import SqlColumn, SqlTable, create_table


@dataclass(frozen=True)
class SqlSchema:
    """The tables of a database. Names are compared ignoring case, as in every supported engine."""

    tables: tuple[SqlTable, ...]

    @cached_property
    def _by_name(self) -> dict[str, SqlTable]:
        return {table.name.lower(): table for table in self.tables}

    def table(self, name: str) -> SqlTable | None:
        """Returns the table of that name, or None."""
        return self._by_name.get(name.lower())

    def as_mapping(self) -> dict[str, dict[str, str]]:
        """Returns types by table and column, in the form of sqlglot's schemas."""
        return {table.name: {column.name: column.type for column in table.columns} for table in self.tables}

    def ddl(self) -> str:
        """Returns `CREATE TABLE` statements for DuckDB, referenced tables first unless they refer to each other."""
        return "\n".join(create_table(table) for table in self.referenced_first())

    def only(self, names: "set[str]") -> "SqlSchema":
        """Returns a schema with only the named tables."""
        wanted = {name.lower() for name in names}
        return SqlSchema(tuple(table for table in self.tables if table.name.lower() in wanted))

    def with_ancestors(self, names: "set[str]") -> "SqlSchema":
        """Returns a schema with the named tables and those that their foreign keys lead to."""
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
        """Returns the tables, referenced ones before those that refer to them, unless they refer to each other."""
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
        """Returns a schema unchanged, or makes one from a plain mapping."""
        return schema if isinstance(schema, SqlSchema) else cls.from_mapping(schema)

    @classmethod
    def from_mapping(cls, tables: Mapping[str, Mapping[str, str]]) -> "SqlSchema":
        """Makes a schema from `{table: {column: type}}`; types of other dialects are converted to DuckDB's."""
        from eval_pipeline.sql_equivalence.schema.duckdb_types import duckdb_type

        return cls(
            tuple(
                SqlTable(name, tuple(SqlColumn(column, duckdb_type(kind)) for column, kind in columns.items()))
                for name, columns in tables.items()
            )
        )

    @classmethod
    def from_ddl(cls, text: str, dialect: str = "duckdb") -> "SqlSchema":
        """Makes a schema from `CREATE TABLE` statements.

        Raises a ValueError with one sentence if one cannot be read.
        """
        from eval_pipeline.sql_equivalence.schema.readers import read_ddl

        return cls(read_ddl(text, dialect))

    @classmethod
    def from_database(cls, path: "str | PathLike[str]") -> "SqlSchema":
        """Reads a schema from a SQLite or DuckDB file, opened read-only. Raises an InputError if it is neither."""
        from eval_pipeline.sql_equivalence.schema.readers import read_database

        return cls(read_database(Path(path)))

    @classmethod
    def from_spider(cls, entry: Mapping[str, Any]) -> "SqlSchema":
        """Makes a schema from an entry of Spider's `tables.json`.

        Raises a ValueError with one sentence if it is malformed.
        """
        from eval_pipeline.sql_equivalence.schema.readers import read_spider

        return cls(read_spider(entry))
