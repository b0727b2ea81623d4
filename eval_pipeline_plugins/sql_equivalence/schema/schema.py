"""The schema of a database, whatever its source."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from eval_pipeline_plugins.sql_equivalence.schema.parts import SqlColumn, SqlTable, SqlView, create_table, create_view


@dataclass(frozen=True)
class SqlSchema:
    """The tables and views of a database. Names are compared ignoring case, as in every supported engine.

    Attributes:
        tables: those that rows are stored in.
        views: in an order in which each comes after those that it reads.
    """

    tables: tuple[SqlTable, ...]
    views: tuple[SqlView, ...] = ()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:  # caches ask for it several times a pair of queries
        return hash((self.tables, self.views))

    @cached_property
    def _by_name(self) -> dict[str, SqlTable]:
        return {table.name.lower(): table for table in self.tables}

    @cached_property
    def _views_by_name(self) -> dict[str, SqlView]:
        return {view.name.lower(): view for view in self.views}

    def table(self, name: str) -> SqlTable | None:
        """Returns the table of that name, or None."""
        return self._by_name.get(name.lower())

    def view(self, name: str) -> SqlView | None:
        """Returns the view of that name, or None."""
        return self._views_by_name.get(name.lower())

    @property
    def relations(self) -> tuple[SqlTable | SqlView, ...]:
        """The tables and the views."""
        return (*self.tables, *self.views)

    def relation(self, name: str) -> SqlTable | SqlView | None:
        """Returns the table or view of that name, or None."""
        return self.table(name) or self.view(name)

    def as_mapping(self) -> dict[str, dict[str, str]]:
        """Returns types by table or view and column, in the form of sqlglot's schemas."""
        return {one.name: {c.name: c.type or "UNKNOWN" for c in one.columns} for one in self.relations}

    def ddl(self) -> str:
        """Returns `CREATE TABLE` statements for DuckDB, referenced tables first unless they refer to each other.

        Views follow as their engine knows them.
        """
        views = (f"{create_view(view)};" for view in self.views)
        return "\n".join((*map(create_table, self.referenced_first()), *views))

    def only(self, names: "set[str]") -> "SqlSchema":
        """Returns a schema with only the named tables and views."""
        wanted = {name.lower() for name in names}
        return SqlSchema(
            tuple(table for table in self.tables if table.name.lower() in wanted),
            tuple(view for view in self.views if view.name.lower() in wanted),
        )

    def read_by(self, names: "set[str]") -> "set[str]":
        """Returns the names, in lower case, with those of all that views among them read.

        A view whose query cannot be read counts as one that reads everything.
        """
        found: set[str] = set()
        waiting = [name.lower() for name in names]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                if (view := self.view(name)) is not None:
                    waiting += view.reads if view.reads is not None else (*self._by_name, *self._views_by_name)
        return found

    def with_ancestors(self, names: "set[str]") -> "SqlSchema":
        """Returns a schema with the named tables and those that their foreign keys lead to."""
        wanted: set[str] = set()
        waiting = [name.lower() for name in names]
        while waiting:
            name = waiting.pop()
            table = self._by_name.get(name)
            if (table is not None or self.view(name) is not None) and name not in wanted:
                wanted.add(name)
                waiting += [key.table.lower() for key in table.foreign_keys] if table is not None else ()
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
        from eval_pipeline_plugins.sql_equivalence.schema.duckdb_types import duckdb_type

        return cls(
            tuple(
                SqlTable(name, tuple(SqlColumn(column, duckdb_type(kind)) for column, kind in columns.items()))
                for name, columns in tables.items()
            )
        )

    @classmethod
    def from_ddl(cls, text: str, dialect: str = "duckdb") -> "SqlSchema":
        """Makes a schema from `CREATE` statements of tables, views, indexes, types and domains.

        Raises a ValueError with one sentence if one cannot be read.
        """
        from eval_pipeline_plugins.sql_equivalence.schema.readers import read_ddl

        return cls(*read_ddl(text, dialect))

    @classmethod
    def from_database(cls, path: "str | PathLike[str]") -> "SqlSchema":
        """Reads a schema from a SQLite or DuckDB file, opened read-only. Raises an InputError if it is neither."""
        from eval_pipeline_plugins.sql_equivalence.schema.readers import read_database

        return cls(*read_database(Path(path)))

    @classmethod
    def from_spider(cls, entry: Mapping[str, Any]) -> "SqlSchema":
        """Makes a schema from an entry of Spider's `tables.json`.

        Raises a ValueError with one sentence if it is malformed.
        """
        from eval_pipeline_plugins.sql_equivalence.schema.readers import read_spider

        return cls(read_spider(entry))
