"""Spares the tests that publish what every new store costs."""

from collections.abc import Callable
from pathlib import Path

from eval_pipeline.store.ddl import text
from eval_pipeline.store.engine import engine
from eval_pipeline.store.snapshot import Snapshot, opened


class EmptyStores:
    """Empty stores that are made once and copied by DuckDB: their comments take longer than all else of a small run.

    Tests in `store/test_store_schema.py` make each anew.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._make = Snapshot.create

    @property
    def create(self) -> Callable[[Snapshot, str, str], None]:
        """What stands in for `Snapshot.create`."""

        def create(snapshot: Snapshot, schema: str, schema_hash: str) -> None:
            made = self._folder / f"{schema_hash}.duckdb"
            if not made.exists():
                self._begin(made, schema, schema_hash)
            snapshot.execute(f"ATTACH {text(str(made))} AS made (READ_ONLY)")
            snapshot.execute("COPY FROM DATABASE made TO store")
            snapshot.execute("DETACH made")

        return create

    def _begin(self, made: Path, schema: str, schema_hash: str) -> None:
        aside = made.with_suffix(".new")
        aside.unlink(missing_ok=True)  # of a test with a full disk
        with engine(aside, None) as connection, opened(connection, aside) as snapshot:
            self._make(snapshot, schema, schema_hash)
        aside.rename(made)
