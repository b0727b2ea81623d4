"""Writes a store without rows. Making one takes DuckDB a quarter of a CPU second, so each is made once."""

from pathlib import Path

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.hashing.kept import kept
from eval_pipeline.core.system.memory import give_back_memory
from eval_pipeline.store.published.engine import engine
from eval_pipeline.store.published.snapshot import STORAGE_VERSION, opened


def write_empty_store(path: Path, schema: str, schema_hash: str, memory_mb: int | None) -> None:
    """Writes a store with that schema and no rows to a file that does not exist yet.

    Args:
        path: the new file.
        schema: SQL that creates the schema.
        schema_hash: its hash, which is stored with it.
        memory_mb: DuckDB's memory limit.
    """
    import duckdb

    def made() -> bytes:
        with engine(path, memory_mb) as connection, opened(connection, path) as snapshot:
            snapshot.create(schema, schema_hash)
        give_back_memory()  # what parsing the schema took is needed for the rows
        if path.with_name(f"{path.name}.wal").exists():
            raise StoreError(f"DuckDB left {path}.wal behind, so {path} is incomplete; publish again")
        return path.read_bytes()

    path.write_bytes(kept("store", [schema_hash, duckdb.__version__, STORAGE_VERSION], made))
