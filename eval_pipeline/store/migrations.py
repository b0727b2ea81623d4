"""Bringing a file of an older schema to the one the code knows now."""

from collections.abc import Callable, Mapping

import pyarrow as pa

from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import arrow_schema

Migration = Callable[[pa.Table], pa.Table]
"""Takes rows of one schema version and gives them in the next; called for one row group at a time."""

MIGRATIONS: Mapping[tuple[str, int], Migration] = {}
"""(table of the record, version it comes from) → how to get to the next version.

Only for what changes a meaning or a name: a new column is NULL in old rows and a dropped one is left out by itself.
"""


def migrate(rows: pa.Table, table: Table, version: int, migrations: Mapping[tuple[str, int], Migration]) -> pa.Table:
    """The rows of an older file with the columns and types that the table has now.

    Args:
        rows: with the key columns, as they are in the file.
        table: the table of the record, as the code declares it.
        version: schema version of the file.
        migrations: `MIGRATIONS`, or another registry in tests.
    """
    for step in range(version, table.version):
        migration = migrations.get((table.name, step))
        if migration is not None:
            rows = migration(rows)
    present = frozenset(rows.column_names)
    schema = arrow_schema(table)
    arrays = [
        rows.column(field.name).cast(field.type) if field.name in present else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
