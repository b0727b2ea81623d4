"""Opens DuckDB with the settings that publishing needs."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


@contextmanager
def engine(beside: Path, memory_mb: int | None) -> Iterator["duckdb.DuckDBPyConnection"]:
    """Opens DuckDB with one thread (more cost CPU time and are not faster here) and limited memory.

    Args:
        beside: the file to be written; data that do not fit into memory are spilled beside it.
        memory_mb: memory limit; None leaves DuckDB's default, which is most of the machine's memory.
    """
    import duckdb

    spill = Path(f"{beside}.spill")
    shutil.rmtree(spill, ignore_errors=True)
    connection = duckdb.connect(
        ":memory:",
        config={
            "threads": 1,
            **({} if memory_mb is None else {"memory_limit": f"{memory_mb}MB"}),
            "temp_directory": str(spill),
            "write_buffer_row_group_count": 1,
            "fsync_mode": "NONE",  # nobody reads the file before it is complete; it is fsynced once then
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        },
    )
    try:
        yield connection
    finally:
        connection.close()
        shutil.rmtree(spill, ignore_errors=True)
