"""Reads the tables and views of DuckDB files, of all schemas."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from eval_pipeline.sql_equivalence.schema.parts import Definition, ForeignKey, SqlColumn, SqlTable
from eval_pipeline.sql_equivalence.schema.readers import read_ddl
from eval_pipeline.sql_equivalence.schema.views import Tables, query_of

if TYPE_CHECKING:
    import duckdb

_DEFAULT = "main"


def read_duckdb(path: Path) -> Tables:
    """Returns the tables, then the views, of a DuckDB file, which is opened read-only; those of `main` first.

    Raises a `duckdb.Error`.
    """
    import duckdb

    with duckdb.connect(str(path), read_only=True) as connection:
        statements: dict[str, list[str]] = {}
        for schema, sql in connection.execute(
            "SELECT schema_name, sql FROM duckdb_tables() WHERE NOT internal AND NOT temporary ORDER BY table_oid"
        ).fetchall():
            statements.setdefault(schema, []).append(sql)
        views = _views(connection)
    made: list[SqlTable] = []
    for schema in sorted(statements, key=lambda name: (name != _DEFAULT, name)):
        tables = read_ddl("\n".join(statements[schema]), "duckdb")
        made += tables if schema == _DEFAULT else [_of_schema(table, schema) for table in tables]
    return (*made, *views)


def _of_schema(table: SqlTable, schema: str) -> SqlTable:
    """Returns a table of another schema; foreign keys cannot lead out of it."""
    keys = tuple(ForeignKey(key.columns, f"{schema}.{key.table}", key.references) for key in table.foreign_keys)
    return replace(table, schema=schema, foreign_keys=keys)


def _views(connection: "duckdb.DuckDBPyConnection") -> list[SqlTable]:
    columns: dict[tuple[str, str], list[SqlColumn]] = {}
    for schema, view, column, kind in connection.execute(
        "SELECT schema_name, table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal "
        "ORDER BY table_oid, column_index"
    ).fetchall():
        columns.setdefault((schema, view), []).append(SqlColumn(column, kind))
    found = connection.execute(
        "SELECT schema_name, view_name, sql FROM duckdb_views() WHERE NOT internal AND NOT temporary ORDER BY view_oid"
    ).fetchall()
    return [
        SqlTable(
            view,
            tuple(columns[schema, view]),
            view=Definition(query_of(sql, "duckdb"), "duckdb"),
            schema=None if schema == _DEFAULT else schema,
        )
        for schema, view, sql in found
        if (schema, view) in columns
    ]
