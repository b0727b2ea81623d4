"""The schema of a database, whatever it was read from."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from eval_pipeline.sql_equivalence.schema.parts import SqlColumn, SqlTable, create_table


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
        return "\n".join(create_table(table) for table in self.referenced_first())

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
        from eval_pipeline.sql_equivalence.schema.duckdb_types import duckdb_type

        return cls(
            tuple(
                SqlTable(name, tuple(SqlColumn(column, duckdb_type(kind)) for column, kind in columns.items()))
                for name, columns in tables.items()
            )
        )

    @classmethod
    def from_ddl(cls, text: str, dialect: str = "duckdb") -> "SqlSchema":
        """From `CREATE TABLE` statements. Raises ValueError with one sentence where one cannot be read."""
        from eval_pipeline.sql_equivalence.schema.readers import read_ddl

        return cls(read_ddl(text, dialect))

    @classmethod
    def from_database(cls, path: "str | PathLike[str]") -> "SqlSchema":
        """From a SQLite or DuckDB file, opened read-only. Raises InputError where it is neither."""
        from eval_pipeline.sql_equivalence.schema.readers import read_database

        return cls(read_database(Path(path)))

    @classmethod
    def from_spider(cls, entry: Mapping[str, Any]) -> "SqlSchema":
        """From an entry of Spider's `tables.json`. Raises ValueError with one sentence where it is malformed."""
        from eval_pipeline.sql_equivalence.schema.readers import read_spider

        return cls(read_spider(entry))
