"""The schema of a database, whatever its source."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_pipeline.sql_equivalence.schema.parts import Definition, SqlColumn, SqlTable, create_table

if TYPE_CHECKING:
    from eval_pipeline.sql_equivalence.syntax.tables_in import TableName


def types(table: SqlTable) -> dict[str, str]:
    """Returns types by column, in the form of sqlglot's schemas."""
    return {column.name: column.type or "UNKNOWN" for column in table.columns}


@lru_cache(maxsize=1024)
def tables_read(view: Definition) -> "tuple[TableName, ...]":
    """Returns the tables that a view reads; none if sqlglot cannot parse it."""
    from eval_pipeline.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statement
    from eval_pipeline.sql_equivalence.syntax.tables_in import base_tables

    try:
        return tuple(sorted(base_tables(parse_statement(view.sql, view.dialect)), key=str))
    except SqlSyntaxError:
        return ()


@dataclass(frozen=True)
class SqlSchema:
    """The tables and views of a database. Names are compared ignoring case, as in every supported engine."""

    tables: tuple[SqlTable, ...]

    @cached_property
    def _by_name(self) -> dict[str, SqlTable]:
        return {table.name.lower(): table for table in self.tables if table.schema is None}

    @cached_property
    def _elsewhere(self) -> dict[str, dict[str, SqlTable]]:
        """The tables of other schemas than the default one, by schema and name."""
        found: dict[str, dict[str, SqlTable]] = {}
        for table in self.tables:
            if table.schema is not None:
                found.setdefault(table.schema.lower(), {})[table.name.lower()] = table
        return found

    def table(self, name: str, schema: str = "") -> SqlTable | None:
        """Returns the table or view of that name, or None; a schema without known tables counts as the default one."""
        return self._elsewhere.get(schema.lower(), self._by_name).get(name.lower())

    def named(self, text: str) -> SqlTable | None:
        """Returns the table or view that `table` or `schema.table` names, or None."""
        schema, _, name = text.rpartition(".")
        return self._by_name.get(text.lower()) or self._elsewhere.get(schema.lower(), {}).get(name.lower())

    @cached_property
    def has_computed(self) -> bool:
        """Whether there are views or generated columns."""
        return any(table.view is not None or len(table.stored) < len(table.columns) for table in self.tables)

    def as_mapping(self) -> dict[str, dict[str, str]]:
        """Returns types by table and column of the default schema, in the form of sqlglot's schemas."""
        return {table.name: types(table) for table in self._by_name.values()}

    def ddl(self) -> str:
        """Returns `CREATE TABLE` statements for DuckDB, referenced tables first unless they refer to each other."""
        return "\n".join(create_table(table) for table in self.referenced_first())

    def only(self, names: "set[str]") -> "SqlSchema":
        """Returns a schema with only the named tables of the default schema."""
        wanted = {name.lower() for name in names}
        return SqlSchema(tuple(t for t in self.tables if t.name.lower() in wanted and t.schema is None))

    def read_by(self, names: "set[str]") -> "set[str]":
        """Returns the names, in lower case, with those of all tables that views among them read."""
        found: set[str] = set()
        waiting = [name.lower() for name in names]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                table = self._by_name.get(name)
                if table is not None and table.view is not None:
                    waiting += [read.name for read in tables_read(table.view)]
        return found

    def with_ancestors(self, names: "set[str]") -> "SqlSchema":
        """Returns a schema with the named tables, those that views read, and those that foreign keys lead to."""
        wanted: set[str] = set()
        waiting = list(self.read_by(names))
        while waiting:
            name = waiting.pop()
            table = self._by_name.get(name)
            if table is not None and name not in wanted:
                wanted.add(name)
                waiting += [key.table.lower() for key in table.foreign_keys]
        return self.only(wanted)

    def referenced_first(self) -> list[SqlTable]:
        """Returns the tables, referenced ones before those that refer to them, unless they refer to each other.

        Views come after what they read.
        """
        done: dict[str, SqlTable] = {}

        def visit(table: SqlTable, under_way: frozenset[str]) -> None:
            name = table.full_name.lower()
            if name in done or name in under_way:
                return
            parents = [self.named(key.table) for key in table.foreign_keys]
            if table.view is not None:
                parents += [self.table(read.name, read.schema) for read in tables_read(table.view)]
            for parent in parents:
                if parent is not None:
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
