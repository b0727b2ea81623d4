"""Writes and verifies the parts of the store: the rows of one table and key, as they are published."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.catalog.manifests import CatalogPart
from eval_pipeline.store.durable import fsync_path, make_folders, replace_durably, temporary_path
from eval_pipeline.store.published.changes import Change
from eval_pipeline.store.published.ddl import quoted, text
from eval_pipeline.store.published.snapshot import PLACE, not_json
from eval_pipeline.store.schemas import EVALUATION_ID, RUN_ID, SIMULATED, Column

if TYPE_CHECKING:
    import duckdb


_IDS_AT_ONCE, _MOST_SHARES = 200_000, 32
"""Ids that are compared at once with those that refer to them; more where all would be read more often than this."""


def rows_referred_to(
    connection: "duckdb.DuckDBPyConnection", columns: str, places: Sequence[Path], unique: str, referring: Path
) -> tuple[str, list[object]]:
    """Returns a query and its values: the first row, in all files, with each id that is referred to, in order.

    Args:
        connection: DuckDB.
        columns: what to select of each row.
        places: files of the record with the rows.
        unique: name of the column with the ids.
        referring: the part that refers to them by a column of that name.
    """
    names, starts = [str(place) for place in places], _starts(places)
    bits = np.packbits(_first_of_each(connection, names, starts, unique, referring)).tobytes()
    source = f"read_parquet(?, hive_partitioning = false, filename = {text(PLACE)}, file_row_number = true)"
    row = f"(file_row_number + map(?::VARCHAR[], ?::BIGINT[])[{quoted(PLACE)}])::INTEGER"
    chosen = f"SELECT {columns} FROM {source} WHERE get_bit(?::BLOB::BIT, {row}) = 1"
    return chosen, [names, bits, names, starts[:-1]]


def _starts(places: Sequence[Path]) -> list[int]:
    """Returns the number of rows before each file, and that of all."""
    return [0, *np.cumsum([pq.read_metadata(place).num_rows for place in places]).tolist()]


def _first_of_each(
    connection: "duckdb.DuckDBPyConnection", names: Sequence[str], starts: Sequence[int], unique: str, referring: Path
) -> NDArray[np.bool_]:
    """Returns which rows of all files are the first with an id that is referred to.

    Ids are looked at a share at a time, by their hash: all of a million would not fit into DuckDB's memory.
    """
    shares = min(_MOST_SHARES, -(-starts[-1] // _IDS_AT_ONCE))
    mine = f"WHERE hash({quoted(unique)}) % {shares} = ?"
    each = " UNION ALL ".join(
        f"SELECT {quoted(unique)} AS id, {start} + file_row_number AS row "
        f"FROM read_parquet(?, file_row_number = true) {mine}"
        for start in starts[:-1]
    )
    wanted = f"SELECT {quoted(unique)} FROM read_parquet(?) {mine}"
    sql = f"SELECT min(row) AS first FROM ({each}) WHERE id IN ({wanted}) GROUP BY id"
    chosen = np.zeros(max(1, starts[-1]), dtype=bool)  # DuckDB knows no empty sequence of bits
    for share in range(shares):
        values = [value for place in (*names, str(referring)) for value in (place, share)]
        chosen[connection.execute(sql, values).fetchnumpy()["first"]] = True
    return chosen


FILES = "meta.files"
"""The parts with the rows of `meta.files`, which have no table of their own."""
Facts = Sequence[tuple[object, ...]]
"""Rows of `meta.files`: table, source, suite, model version, date, path, content hash."""

FILE_COLUMNS = {
    "table_name": "VARCHAR", "source": "VARCHAR", "suite": "VARCHAR", "model_version": "VARCHAR", "eval_date": "DATE",
    "path": "VARCHAR", "content_hash": "VARCHAR",
}  # fmt: skip
_SHORT_ROWS, _LONG_ROWS = 16_384, 2048
"""Rows in a row group, of tables with short and with long texts; DuckDB keeps a group in memory."""
_MOST_SHORT_ROWS, _GROUPS = 65_536, 256
"""With more groups than this they are larger, up to so many rows: every query reads what describes all groups."""
_CHUNK = 1 << 20


class PartWriter:
    """Writes parts into a folder; a part appears whole or not at all.

    Args:
        connection: DuckDB with one thread, so that equal files of the record give equal bytes.
        parts: the folder of all parts.
    """

    def __init__(self, connection: "duckdb.DuckDBPyConnection", parts: Path) -> None:
        self._connection = connection
        self._parts = parts
        self._simulated: dict[str, bool] = {}

    def write(self, change: Change, described: CatalogPart | None, referring: CatalogPart | None) -> CatalogPart | None:
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
        try:
            if referring is not None and shared:
                select, values = self._referred_to(change, referring)
            else:
                select, values = _published(change, self._is_simulated(described))
            part = self._write(change.table.name, select, values, _group(change))
        except duckdb.ConversionException as error:
            raise not_json(self._execute, change.table, change.files) or error from error
        expected = sum(file.rows for file in change.files)
        if not shared and (part.rows if part else 0) != expected:
            raise StoreError(f"{change.files[0].relative}: not all of its {expected} rows could be published")
        return part

    def write_files(self, facts: Facts) -> CatalogPart | None:
        """Writes the rows of `meta.files` of one key."""
        columns = ", ".join(f"unnest(?::{kind}[]) AS {quoted(name)}" for name, kind in FILE_COLUMNS.items())
        values = [list(column) for column in zip(*facts, strict=True)]
        return self._write(FILES, f"SELECT {columns}", values, _SHORT_ROWS) if facts else None

    def _referred_to(self, change: Change, referring: CatalogPart) -> tuple[str, list[object]]:
        table, places = change.table, [file.place for file in change.files]
        columns = ", ".join(map(_typed, table.published_columns))
        return rows_referred_to(self._connection, columns, places, table.unique, referring.path(self._parts))

    def _is_simulated(self, described: CatalogPart | None) -> bool | None:
        if described is None:
            return None
        if described.name not in self._simulated:
            place = str(described.path(self._parts))
            ((found,),) = self._execute("SELECT simulated FROM read_parquet(?)", [place])
            self._simulated[described.name] = bool(found)
        return self._simulated[described.name]

    def _write(self, table: str, select: str, values: Sequence[object], group: int) -> CatalogPart | None:
        make_folders(self._parts / table)
        temporary = temporary_path(self._parts / table / "part.parquet")
        options = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {group}, USE_TMP_FILE false"
        try:
            ((rows,),) = self._execute(f"COPY ({select}) TO {text(str(temporary))} ({options})", values)
            return self._in_place(temporary, table, rows) if rows else None
        finally:
            temporary.unlink(missing_ok=True)

    def _in_place(self, temporary: Path, table: str, rows: int) -> CatalogPart:
        if _rows(temporary) != rows:
            raise StoreError(f"{temporary} was not written completely; publish again")
        fsync_path(temporary)
        temporary.chmod(temporary.stat().st_mode & ~0o222)
        part = CatalogPart(table, digest(temporary), rows)
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


def wrong(part: CatalogPart, parts: Path) -> str:
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
            elif column == EVALUATION_ID and change.table.key == "evaluation":
                values.append(change.key.evaluation)
                yield f"?::VARCHAR AS {column.name}"
            else:
                yield _typed(column)

    select = ", ".join(columns())
    return (
        f"SELECT {select} FROM read_parquet(?, hive_partitioning = false, filename = {text(PLACE)})",
        [*values, places],
    )


def _typed(column: Column) -> str:
    return f"{quoted(column.name)}::{column.type} AS {quoted(column.name)}"


def _group(change: Change) -> int:
    if any(column.long for column in change.table.columns):
        return _LONG_ROWS
    rows = sum(file.rows for file in change.files)
    return max(_SHORT_ROWS, min(_MOST_SHORT_ROWS, rows // _GROUPS))
