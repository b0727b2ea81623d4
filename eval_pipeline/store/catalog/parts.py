"""Writes and verifies the parts of the store: the rows of one table and key, as they are published."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.catalog.manifests import Part
from eval_pipeline.store.changes import Change
from eval_pipeline.store.ddl import quoted, text
from eval_pipeline.store.durable import fsync_path, make_folders, replace_durably, temporary_path
from eval_pipeline.store.schemas import RUN_ID, SIMULATED, Column, Table
from eval_pipeline.store.snapshot import PLACE, not_json

if TYPE_CHECKING:
    import duckdb

FILES = "meta.files"
"""The parts with the rows of `meta.files`, which have no table of their own."""
_Rows = AbstractContextManager[tuple[str, list[object]]]
"""A query and its values, and what it needs while it runs."""
Facts = Sequence[tuple[object, ...]]
"""Rows of `meta.files`: table, source, suite, model version, date, path, content hash."""

FILE_COLUMNS = {
    "table_name": "VARCHAR", "source": "VARCHAR", "suite": "VARCHAR", "model_version": "VARCHAR", "eval_date": "DATE",
    "path": "VARCHAR", "content_hash": "VARCHAR",
}  # fmt: skip
_SHORT_ROWS, _LONG_ROWS = 16_384, 2048
"""Rows in a row group, of tables with short and with long texts; DuckDB keeps a group in memory."""
_CHUNK = 1 << 20


class PartWriter:
    """Writes parts into a folder; a part appears whole or not at all.

    Args:
        connection: DuckDB with one thread, so that equal rows give equal bytes.
        parts: the folder of all parts.
    """

    def __init__(self, connection: "duckdb.DuckDBPyConnection", parts: Path) -> None:
        self._connection = connection
        self._parts = parts
        self._simulated: dict[str, bool] = {}

    def write(self, change: Change, described: Part | None, referring: Part | None) -> Part | None:
        """Writes the rows of a change; returns None if there are none.

        Args:
            change: what to write.
            described: the part of `model_versions` with the model version of the rows.
            referring: for a shared table, the part whose rows refer to its rows.

        Raises:
            StoreError: a JSON column holds something else, or not every row has arrived.
        """
        import duckdb

        shared = change.table.key == "shared"
        if not change.files or (shared and referring is None):
            return None
        if shared and referring is not None:
            rows: _Rows = _referred_to(self._connection, change, referring.path(self._parts))
        else:
            rows = nullcontext(_published(change, self._is_simulated(described)))
        try:
            with rows as (select, values):
                part = self._write(change.table.name, select, values, _group(change.table))
        except duckdb.ConversionException as error:
            raise not_json(self._execute, change.table, change.files) or error from error
        expected = sum(file.rows for file in change.files)
        if not shared and (part.rows if part else 0) != expected:
            raise StoreError(f"{change.files[0].relative}: not all of its {expected} rows could be published")
        return part

    def write_files(self, facts: Facts) -> Part | None:
        """Writes the rows of `meta.files` of one key."""
        columns = ", ".join(f"unnest(?::{kind}[]) AS {quoted(name)}" for name, kind in FILE_COLUMNS.items())
        values = [list(column) for column in zip(*facts, strict=True)]
        return self._write(FILES, f"SELECT {columns}", values, _SHORT_ROWS) if facts else None

    def _is_simulated(self, described: Part | None) -> bool | None:
        if described is None:
            return None
        if described.name not in self._simulated:
            place = str(described.path(self._parts))
            ((found,),) = self._execute("SELECT simulated FROM read_parquet(?)", [place])
            self._simulated[described.name] = bool(found)
        return self._simulated[described.name]

    def _write(self, table: str, select: str, values: Sequence[object], group: int) -> Part | None:
        make_folders(self._parts / table)
        temporary = temporary_path(self._parts / table / "part.parquet")
        options = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {group}, USE_TMP_FILE false"
        try:
            ((rows,),) = self._execute(f"COPY ({select}) TO {text(str(temporary))} ({options})", values)
            return self._in_place(temporary, table, rows) if rows else None
        finally:
            temporary.unlink(missing_ok=True)

    def _in_place(self, temporary: Path, table: str, rows: int) -> Part:
        if _rows(temporary) != rows:
            raise StoreError(f"{temporary} was not written completely; publish again")
        fsync_path(temporary)
        temporary.chmod(temporary.stat().st_mode & ~0o222)
        part = Part(table, digest(temporary), rows)
        target = part.path(self._parts)
        if not target.exists() or digest(target) != part.name:
            replace_durably(temporary, target)
        return part

    def _execute(self, sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, list(values)).fetchall()


def digest(path: Path) -> str:
    """Returns the name that a part with these bytes has."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(_CHUNK):
            found.update(data)
    return found.hexdigest()[:32]


def wrong(part: Part, parts: Path) -> str:
    """Returns what is wrong with a part on the disk; empty if nothing is."""
    path = part.path(parts)
    try:
        if digest(path) != part.name:
            return f"{path} is damaged"
        return "" if _rows(path) == part.rows else f"{path} has other rows than its manifest says"
    except FileNotFoundError:
        return f"{path} is missing"
    except (OSError, pa.ArrowException) as error:
        return f"{path} cannot be read ({error})"


def _rows(path: Path) -> int:
    found: int = pq.read_metadata(path).num_rows
    return found


def _published(change: Change, simulated: bool | None) -> tuple[str, list[object]]:
    """Returns what selects the rows of a table, with the columns that publishing adds."""
    values: list[object] = []
    places = [str(file.place) for file in change.files]

    def columns() -> Iterator[str]:
        for column in change.table.published_columns:
            if column == SIMULATED and column in change.table.columns_of_publishing:
                values.append(simulated)
                yield f"?::BOOLEAN AS {column.name}"
            elif column == RUN_ID and column in change.table.columns_of_publishing:
                values.extend([places, [file.run_id or None for file in change.files]])
                yield f"map(?::VARCHAR[], ?::VARCHAR[])[{quoted(PLACE)}] AS {column.name}"
            else:
                yield _typed(column)

    select = ", ".join(columns())
    return (
        f"SELECT {select} FROM read_parquet(?, hive_partitioning = false, filename = {text(PLACE)})",
        [*values, places],
    )


@contextmanager
def _referred_to(
    connection: "duckdb.DuckDBPyConnection", change: Change, referring: Path
) -> Iterator[tuple[str, list[object]]]:
    """Gives what selects the rows of a shared table that its key refers to, each once.

    They are chosen by their ids alone and then read as a stream: a join in DuckDB writes all texts to disk.
    """
    table, name, places = change.table, "rows_referred_to", [file.place for file in change.files]
    connection.register(name, _chosen_rows(places, table, _first_of_each(connection, places, table.unique, referring)))
    try:
        yield f"SELECT {', '.join(map(_typed, table.published_columns))} FROM {name}", []
    finally:
        connection.unregister(name)


def _first_of_each(
    connection: "duckdb.DuckDBPyConnection", places: Sequence[Path], unique: str, referring: Path
) -> list[NDArray[np.bool_]]:
    """Returns for each file which of its rows are the first, in all files, with an id that is referred to.

    By DuckDB, which spills ids that do not fit into its memory.
    """
    starts = np.cumsum([0, *(pq.read_metadata(place).num_rows for place in places)])
    each = " UNION ALL ".join(
        f"SELECT {quoted(unique)} AS id, {start} + file_row_number AS row FROM read_parquet(?, file_row_number = true)"
        for start in starts[:-1]
    )
    wanted = f"SELECT {quoted(unique)} FROM read_parquet(?)"
    sql = f"SELECT min(row) AS first FROM ({each}) WHERE id IN ({wanted}) GROUP BY id"
    chosen = np.zeros(starts[-1], dtype=bool)
    chosen[connection.execute(sql, [*map(str, places), str(referring)]).fetchnumpy()["first"]] = True
    return np.split(chosen, starts[1:-1])


def _chosen_rows(places: Sequence[Path], table: Table, chosen: Sequence[NDArray[np.bool_]]) -> pa.RecordBatchReader:
    """Returns the chosen rows of each file, a few at a time."""
    columns = [column.name for column in table.published_columns]

    def batches() -> Iterator[pa.RecordBatch]:
        for place, mine in zip(places, chosen, strict=True):
            with pq.ParquetFile(place) as file:
                start = 0
                for batch in file.iter_batches(_LONG_ROWS, columns=columns, use_threads=False):
                    yield batch.select(columns).filter(pa.array(mine[start : start + batch.num_rows]))
                    start += batch.num_rows

    return pa.RecordBatchReader.from_batches(pq.read_schema(places[0]).empty_table().select(columns).schema, batches())


def _typed(column: Column) -> str:
    return f"{quoted(column.name)}::{column.type} AS {quoted(column.name)}"


def _group(table: Table) -> int:
    return _LONG_ROWS if any(column.long for column in table.columns) else _SHORT_ROWS
