"""SQL operations on the unpublished copy of the store that is being updated."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.system.memory import give_back_memory
from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.published.changes import ROW_GROUP, Change, Part, SourceFile, together
from eval_pipeline.store.published.ddl import quoted, text
from eval_pipeline.store.schemas import EVALUATION_ID, RUN_ID, SIMULATED, Table

if TYPE_CHECKING:
    import duckdb

STORAGE_VERSION = "v1.4.0"
"""Storage format of the file: readable by DuckDB 1.4, so that BI tools with older drivers can open it."""
_LARGE_ROW_GROUP = 16_384
"""Row group size for many short rows.

It saves a third of the CPU time, with about the memory that long rows take in small groups.
"""
_MANY_ROWS = 8_000
"""Minimum number of new rows for a table to get large row groups, since the file must be reopened for them."""
PLACE = "place of the file"
"""Column that DuckDB adds when it reads several files; no column of ours has this name."""
_COMPACT_FROM_BLOCKS = 32


class Snapshot:
    """An open store file that no other process uses yet."""

    def __init__(self, connection: "duckdb.DuckDBPyConnection", path: Path) -> None:
        self._connection = connection
        self._path = path

    def attach(self, row_group: int) -> None:
        """Opens the file so that new rows are stored in row groups of the given size.

        The file is attached rather than connected to, because DuckDB shares connections to one path within a process: a
        connection to a replaced file would show its old contents.
        """
        self._attach(self._path, "store", row_group)
        self.execute("USE store")

    def _attach(self, path: Path, name: str, row_group: int) -> None:
        # Nobody would read the log of a file that is not complete; it would hold all rows of a transaction in memory.
        options = f"ROW_GROUP_SIZE {row_group}, STORAGE_VERSION {text(STORAGE_VERSION)}, RECOVERY_MODE no_wal_writes"
        self.execute(f"ATTACH {text(str(path))} AS {name} ({options})")

    def detach(self) -> None:
        """Closes the file."""
        self.execute("USE memory")
        self.execute("DETACH store")

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Runs one statement and returns its rows."""
        cursor = self._connection.execute(sql, list(parameters))
        return cursor.fetchall() if cursor.description else []

    def create(self, schema: str, schema_hash: str) -> None:
        """Creates the tables, views and macros of an empty store."""
        # One transaction, because one for each of the hundreds of statements would take half as long again. The
        # optimizer is disabled because it takes a fifth of the time and finds nothing to optimize.
        self._connection.execute(f"PRAGMA disable_optimizer; BEGIN; {schema}; COMMIT; PRAGMA enable_optimizer")
        self.execute("INSERT INTO meta.store VALUES (?)", [schema_hash])

    def apply(self, changes: Sequence[Change], tables: Sequence[Table]) -> int:
        """Applies the changes; if this fails, the file is unusable.

        Args:
            changes: sorted by table and key; rows are stored in this order.
            tables: all tables of the store.

        Returns:
            The number of rows added.
        """
        large = _with_many_short_rows(changes)
        rows = self._apply([change for change in changes if change.table.name not in large], tables)
        if large:
            self.detach()
            self.attach(_LARGE_ROW_GROUP)
            # Otherwise DuckDB would merge the small row groups of all other tables, which takes CPU time and memory.
            self.execute("SET max_vacuum_tasks = 0")
            rows += self._apply([change for change in changes if change.table.name in large], tables)
        return rows

    def _apply(self, changes: Sequence[Change], tables: Sequence[Table]) -> int:
        self.execute("BEGIN")
        had = bool(self.execute("SELECT 1 FROM meta.files LIMIT 1"))
        by_table = groupby(changes, lambda change: change.table)
        rows = sum(self._replace(table, list(mine), had=had) for table, mine in by_table)
        self._remember(changes)
        fewer = {change.table.name for change in changes if change.was}
        for table in tables:
            if table.key == "shared" and table.referenced_by in fewer:
                unique = quoted(table.unique)
                self.execute(
                    f"DELETE FROM {quoted(table.name)} AS row WHERE NOT EXISTS "
                    f"(FROM {quoted(table.referenced_by)} AS user WHERE user.{unique} = row.{unique})"
                )
        self.execute("COMMIT")
        self.execute("CHECKPOINT")
        return rows

    def free_share(self) -> float:
        """Returns the share of free blocks in the file, 0..1; 0 for small files."""
        total, free = self.execute(
            "SELECT total_blocks, free_blocks FROM pragma_database_size() WHERE database_name = 'store'"
        )[0]
        return free / total if total >= _COMPACT_FROM_BLOCKS else 0.0

    def compact(self, target: Path) -> None:
        """Writes the store without its free blocks to another file."""
        self._attach(target, "compacted", ROW_GROUP)
        self.execute("COPY FROM DATABASE store TO compacted")
        self.execute("CHECKPOINT compacted")
        self.execute("DETACH compacted")

    def _replace(self, table: Table, changes: Sequence[Change], *, had: bool) -> int:
        files = [file for change in changes for file in change.files]
        if table.key == "shared":
            return self._insert_missing(table, files)  # existing rows may be in use elsewhere: see _drop_orphans
        if had:  # the store is not new
            self._delete(table, [change.key for change in changes])
        return self._insert(table, files)

    def _delete(self, table: Table, keys: Sequence[RecordKey]) -> None:
        """Removes the rows of the keys, even if the memo does not list them, so that no row can be stored twice.

        One statement for all keys, because each reads the whole table.
        """
        values = [key.values(table) for key in keys]
        names = list(values[0])
        gone = ", ".join(f"unnest(?) AS {quoted(name)}" for name in names)
        where = " AND ".join(f"row.{quoted(name)} = gone.{quoted(name)}" for name in names)
        lists = [[value[name] for value in values] for name in names]
        self.execute(f"DELETE FROM {quoted(table.name)} AS row USING (SELECT {gone}) AS gone WHERE {where}", lists)

    def _insert(self, table: Table, files: Sequence[SourceFile]) -> int:
        rows, columns, known = 0, _columns(table), list[object]()
        added = table.columns_of_publishing
        if table.key == "evaluation":
            columns += f", map(?::VARCHAR[], ?::VARCHAR[])[{quoted(PLACE)}] AS {EVALUATION_ID.name}"
        if SIMULATED in added:
            columns += f", map(?::VARCHAR[], ?::BOOLEAN[])[model_version] AS {SIMULATED.name}"
            known += self.execute("SELECT list(model_version), list(simulated) FROM model_versions")[0]
        if RUN_ID in added:
            columns += f", map(?::VARCHAR[], ?::VARCHAR[])[{quoted(PLACE)}] AS {RUN_ID.name}"
        source = f"read_parquet(?, hive_partitioning = false, filename = {text(PLACE)}, file_row_number = true)"
        for some, part in together(files):
            places = [str(file.place) for file in some]
            runs = [places, [file.run_id or None for file in some]] if RUN_ID in added else []
            own = [places, [file.key.evaluation for file in some]] if table.key == "evaluation" else []
            select = f"SELECT {columns} FROM {source} WHERE true"
            rows += self._add(select, [*own, *known, *runs, places], table, some, part)
        return rows

    def _add(
        self, select: str, parameters: list[object], table: Table, files: Sequence[SourceFile], part: Part | None
    ) -> int:
        import duckdb

        if part is not None:
            select, parameters = f"{select} AND file_row_number BETWEEN ? AND ?", [*parameters, *part]
        try:
            added: int = self.execute(f"INSERT INTO {quoted(table.name)} BY NAME {select}", parameters)[0][0]
        except duckdb.ConversionException as error:
            self.execute("ROLLBACK")
            raise not_json(self.execute, table, files) or error from error
        if part is not None:
            self._write_out()
        return added

    def _write_out(self) -> None:
        """Frees the memory of the rows inserted so far."""
        self.execute("COMMIT")
        # The row groups of the parts would be put together again.
        self.execute("SET max_vacuum_tasks = 0")
        self.execute("CHECKPOINT")
        give_back_memory()
        self.execute("BEGIN")

    def _insert_missing(self, table: Table, files: Sequence[SourceFile]) -> int:
        """Adds rows that are referred to and do not exist yet.

        The joins use the places of rows (file and row number) instead of rows, because rows may be large. If several
        files have the same row, the first one is taken.
        """
        unique = quoted(table.unique)
        source = f"read_parquet(?, hive_partitioning = false, filename = {text(PLACE)}, file_row_number = true)"
        place = f"{{'file': list_position(?::VARCHAR[], {quoted(PLACE)}), 'row': file_row_number}}"
        select = (
            f"SELECT {_columns(table)} FROM {source} WHERE {place} IN ("
            f"SELECT min({place}) FROM {source} AS new "
            f"WHERE EXISTS (FROM {quoted(table.referenced_by)} AS user WHERE user.{unique} = new.{unique}) "
            f"AND NOT EXISTS (FROM {quoted(table.name)} AS old WHERE old.{unique} = new.{unique}) "
            f"GROUP BY new.{unique})"
        )
        added = 0
        for some, part in together(files):
            places = [str(file.place) for file in some]
            added += self._add(select, [places] * 4, table, some, part)
        return added

    def _remember(self, changes: Sequence[Change]) -> None:
        was = [path for change in changes for path in change.was]
        if was:
            self.execute("DELETE FROM meta.files WHERE path IN (SELECT unnest(?))", [was])
        facts = [list(column) for column in zip(*(f.facts() for c in changes for f in c.files), strict=True)]
        if facts:
            self.execute(f"INSERT INTO meta.files SELECT {', '.join('unnest(?)' for _ in facts)}", facts)


@contextmanager
def opened(connection: "duckdb.DuckDBPyConnection", path: Path) -> Iterator[Snapshot]:
    """Attaches the store file for the duration of the block."""
    snapshot = Snapshot(connection, path)
    try:
        snapshot.attach(ROW_GROUP)
        yield snapshot
    except BaseException:
        with suppress(Exception):  # report the original error, not this consequence of it
            connection.execute("ROLLBACK")
        raise
    finally:
        with suppress(Exception):
            snapshot.detach()


def _with_many_short_rows(changes: Sequence[Change]) -> set[str]:
    """Returns the names of the tables that get large row groups.

    Shared tables and those that refer to them never do.
    """
    tables = [change.table for change in changes]
    referring = {table.referenced_by for table in tables if table.key == "shared"}
    return {
        table.name
        for table, mine in groupby(changes, lambda change: change.table)
        if table.key != "shared"
        and table.name not in referring
        and not any(column.long for column in table.columns)
        and sum(file.rows for change in mine for file in change.files) >= _MANY_ROWS
    }


def not_json(
    execute: Callable[[str, Sequence[object]], Sequence[object]], table: Table, files: Sequence[SourceFile]
) -> StoreError | None:
    """Returns an error that names the file and column with invalid JSON, which DuckDB's own error does not name.

    Args:
        execute: runs a statement with parameters and returns its rows.
        table: the table that the files were loaded into.
        files: the files.
    """
    for file in files:
        for column in (column.name for column in table.columns if column.type == "JSON"):
            bad = f"FROM read_parquet(?, hive_partitioning = false) WHERE NOT json_valid({quoted(column)}) LIMIT 1"
            if execute(f"SELECT 1 {bad}", [str(file.place)]):
                return StoreError(f"{file.relative} holds text that is not JSON in {column}; correct what wrote it")
    return None


def _columns(table: Table) -> str:
    return ", ".join(quoted(column.name) for column in table.all_columns if column != EVALUATION_ID)
