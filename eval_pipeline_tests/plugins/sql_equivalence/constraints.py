"""Whether rows keep the constraints of a schema, as SQLite sees it."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import date, datetime
from typing import Any

from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema


def broken_constraints(schema: SqlSchema, rows: Mapping[str, Sequence[Sequence[Any]]]) -> list[str]:
    """What is wrong with the rows of the tables; empty where all constraints hold."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema.ddl())
        for table in schema.tables:
            places = ", ".join("?" * len(table.columns))
            for row in rows.get(table.name, rows.get(table.name.lower(), ())):
                try:
                    connection.execute(f'INSERT INTO "{table.name}" VALUES ({places})', tuple(map(_plain, row)))
                except sqlite3.IntegrityError as error:
                    return [f"{table.name} {row}: {error}"]
        return [str(found) for found in connection.execute("PRAGMA foreign_key_check").fetchall()]


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date | datetime) else value
