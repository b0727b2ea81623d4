"""What readers of a catalog are allowed: its parts, for reading."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.store.catalog.sweeping import note_open
from eval_pipeline.store.catalog.views import parts_folder
from eval_pipeline.store.ddl import text
from eval_pipeline.store.form import catalog_folder

if TYPE_CHECKING:
    import duckdb

_WRITING = frozenset({"ATTACH", "COPY", "COPY_DATABASE", "EXECUTE", "EXPORT", "PREPARE"})
"""Statements that could write into the folder of the parts, which DuckDB lets readers reach without distinction."""
_EXPLAIN = re.compile(r"\s*EXPLAIN\b(\s*ANALYZE\b)?(\s*\([^)]*\))?", re.IGNORECASE)


def allow_parts(connection: "duckdb.DuckDBPyConnection", store: Path) -> bool:
    """Allows a connection to read the parts of an attached store, and notes that it does.

    Returns:
        False if the store is one file without parts.

    Raises:
        StoreError: the store was moved without being published again.
    """
    parts = parts_folder(connection)
    if parts is None:
        return False
    if parts != catalog_folder(store) / "parts":
        raise StoreError(f"{store} was moved and still reads {parts}; run `eval-pipeline publish`")
    note_open(connection, store)
    connection.execute(f"SET allowed_directories = [{text(str(parts))}]")
    return True


def refuse_writing(connection: "duckdb.DuckDBPyConnection", sql: str) -> None:
    """Raises UsageError for statements that could change parts; duckdb.Error for what is not SQL."""
    for statement in connection.extract_statements(sql):
        if statement.type.name == "EXPLAIN":
            refuse_writing(connection, _EXPLAIN.sub("", statement.query, count=1))
        elif statement.type.name in _WRITING:
            raise UsageError(f"{statement.type.name} is not possible here: the store is only read")
