"""Migration of older files of the record to the current schema."""

from collections.abc import Callable, Mapping

import pyarrow as pa

from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import arrow_schema

Migration = Callable[[pa.Table], pa.Table]
"""Converts rows of one schema version to the next; called for one row group at a time."""

MIGRATIONS: Mapping[tuple[str, int], Migration] = {}
"""(table of the record, version) → migration from this version to the next.

Needed only when a column's meaning or name changes: new columns are NULL in old rows, and dropped ones are left out.
"""


def migrate(rows: pa.Table, table: Table, version: int, migrations: Mapping[tuple[str, int], Migration]) -> pa.Table:
    """Returns the rows of an older file with the table's current columns and types.

    Args:
        rows: rows as they are in the file, with the key columns.
        table: the table of the record in its current form.
        version: schema version of the file.
        migrations: `MIGRATIONS`, or another registry in tests.
    """
    rows = in_steps(rows, table, version, migrations)
    present = frozenset(rows.column_names)
    schema = arrow_schema(table)
    arrays = [
        rows.column(field.name).cast(field.type) if field.name in present else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def in_steps(rows: pa.Table, table: Table, version: int, migrations: Mapping[tuple[str, int], Migration]) -> pa.Table:
    """Returns the rows of an older file as the migrations leave them; columns that it lacks then are NULL."""
    for step in range(version, table.version):
        migration = migrations.get((table.name, step))
        if migration is not None:
            rows = migration(rows)
    return rows
