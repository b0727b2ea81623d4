"""A copy of the published store that is being changed aside, before anyone sees it: what is done to it in SQL."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.ddl import quoted, text
from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.schemas import RUN_ID, SIMULATED, Table
from eval_pipeline.store.tables import all_tables

if TYPE_CHECKING:
    import duckdb

_ROW_GROUP = 2048
"""Rows that DuckDB gathers before it compresses them. Its default, 122,880, keeps 0.6 GB of prompts in memory."""
STORAGE_VERSION = "v1.4.0"
"""Form of the file: what DuckDB 1.4 reads, so that BI tools whose drivers lag behind can open it."""
_LARGE_ROW_GROUP = 16_384
"""The same for many short rows: a third less CPU time for them, in the memory that long ones take in small groups."""
_MANY_ROWS = 100_000
"""From how many new rows on a table gets large row groups: opening the file for them must pay."""
_FILES_A_STATEMENT = 200
_PLACE = "place of the file"
"""Column that DuckDB adds to what it reads of several files; never a name of ours."""
_COMPACT_FROM_BLOCKS = 32


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of the record as one published table sees it.

    Attributes:
        relative: its path below the record, with `/`.
        place: where to read it: the file itself, or a copy in today's schema.
        rows: how many it has.
        run_id: run that made them; empty where the file does not say.
    """

    table: Table
    source: str
    key: RecordKey
    relative: str
    place: Path
    content_hash: str
    rows: int
    run_id: str = ""

    def facts(self) -> tuple[str, str, str | None, str | None, date | None, str, str]:
        """The row of `meta.files`."""
        key = self.key
        return (
            *(self.table.name, self.source, key.suite, key.model_version, key.eval_date),
            *(self.relative, self.content_hash),
        )


@dataclass(frozen=True, slots=True)
class Change:
    """One table and key whose rows are replaced.

    Attributes:
        files: what they come from now; none where they are to go.
        was: paths of the files that they came from before; none where there are no rows.
    """

    table: Table
    key: RecordKey
    files: tuple[SourceFile, ...]
    was: tuple[str, ...]


class Snapshot:
    """An open store file that no one else knows of yet."""

    def __init__(self, connection: "duckdb.DuckDBPyConnection", path: Path) -> None:
        self._connection = connection
        self._path = path

    def attach(self, row_group: int) -> None:
        """Opens the file so that new rows are stored in groups of that many.

        Attached rather than connected to: DuckDB shares connections to one path within a process, so that one to a file
        that was renamed over would show the file from before.
        """
        self._attach(self._path, "store", row_group)
        self.execute("USE store")

    def _attach(self, path: Path, name: str, row_group: int) -> None:
        options = f"ROW_GROUP_SIZE {row_group}, STORAGE_VERSION {text(STORAGE_VERSION)}"
        self.execute(f"ATTACH {text(str(path))} AS {name} ({options})")

    def detach(self) -> None:
        """Closes the file."""
        self.execute("USE memory")
        self.execute("DETACH store")

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Runs one statement and gives its rows."""
        cursor = self._connection.execute(sql, list(parameters))
        return cursor.fetchall() if cursor.description else []

    def create(self, schema: str, schema_hash: str) -> None:
        """Makes the tables, views and macros of an empty store."""
        # In one transaction: one for each of the hundreds of statements would take half as long again.
        # Nothing in them can be optimized, and looking for it takes a fifth of the time.
        self._connection.execute(f"PRAGMA disable_optimizer; BEGIN; {schema}; COMMIT; PRAGMA enable_optimizer")
        self.execute("INSERT INTO meta.store VALUES (?)", [schema_hash])

    def apply(self, changes: Sequence[Change], tables: Sequence[Table]) -> int:
        """Makes the changes; where this fails, the file is of no use.

        Args:
            changes: sorted by table and key; rows are stored in this order.
            tables: all tables of the store.

        Returns:
            How many rows were added.
        """
        large = _with_many_short_rows(changes)
        rows = self._apply([change for change in changes if change.table.name not in large], tables)
        if large:
            self.detach()
            self.attach(_LARGE_ROW_GROUP)
            # Else DuckDB would join the small groups of all other tables to large ones, which takes CPU and memory.
            self.execute("SET max_vacuum_tasks = 0")
            rows += self._apply([change for change in changes if change.table.name in large], tables)
        return rows

    def _apply(self, changes: Sequence[Change], tables: Sequence[Table]) -> int:
        self.execute("BEGIN")
        rows = sum(self._replace(table, list(mine)) for table, mine in groupby(changes, lambda change: change.table))
        self._remember(changes)
        fewer = {change.table.name for change in changes if change.was}
        for table in tables:
            if table.key == "shared" and table.referenced_by in fewer:
                self._drop_orphans(table)
        self.execute("COMMIT")
        self.execute("CHECKPOINT")
        return rows

    def free_share(self) -> float:
        """Share of the file's blocks that hold nothing, 0..1; 0 for files too small to care."""
        total, free = self.execute(
            "SELECT total_blocks, free_blocks FROM pragma_database_size() WHERE database_name = 'store'"
        )[0]
        return free / total if total >= _COMPACT_FROM_BLOCKS else 0.0

    def compact(self, target: Path) -> None:
        """Writes the store without its free blocks to another file."""
        self._attach(target, "compacted", _ROW_GROUP)
        self.execute("COPY FROM DATABASE store TO compacted")
        self.execute("CHECKPOINT compacted")
        self.execute("DETACH compacted")

    def _replace(self, table: Table, changes: Sequence[Change]) -> int:
        files = [file for change in changes for file in change.files]
        if table.key == "shared":
            return self._insert_missing(table, files)  # others may need the rows there are: see _drop_orphans
        # Also of what the memo does not know: no row stands there twice, whatever it says.
        is_new = not self.execute("SELECT 1 FROM meta.files LIMIT 1")
        for keyed in (change.key.values(table) for change in changes if not is_new):
            where = " AND ".join(f"{quoted(name)} = ?" for name in keyed)
            self.execute(f"DELETE FROM {quoted(table.name)} WHERE {where}", list(keyed.values()))
        return self._insert(table, files)

    def _insert(self, table: Table, files: Sequence[SourceFile]) -> int:
        rows, columns, known = 0, _columns(table), list[object]()
        added = table.columns_of_publishing
        if SIMULATED in added:
            columns += f", map(?::VARCHAR[], ?::BOOLEAN[])[model_version] AS {SIMULATED.name}"
            known += self.execute("SELECT list(model_version), list(simulated) FROM model_versions")[0]
        if RUN_ID in added:
            columns += f", map(?::VARCHAR[], ?::VARCHAR[])[{quoted(_PLACE)}] AS {RUN_ID.name}"
        for start in range(0, len(files), _FILES_A_STATEMENT):
            some = files[start : start + _FILES_A_STATEMENT]
            places = [str(file.place) for file in some]
            runs = [places, [file.run_id or None for file in some]] if RUN_ID in added else []
            select = f"SELECT {columns} FROM read_parquet(?, hive_partitioning = false, filename = {text(_PLACE)})"
            rows += self._add(select, [*known, *runs, places], table, files)
        return rows

    def _add(self, select: str, parameters: list[object], table: Table, files: Sequence[SourceFile]) -> int:
        import duckdb

        try:
            added: int = self.execute(f"INSERT INTO {quoted(table.name)} BY NAME {select}", parameters)[0][0]
        except duckdb.ConversionException as error:
            self.execute("ROLLBACK")
            raise self._not_json(table, files) or error from error
        return added

    def _not_json(self, table: Table, files: Sequence[SourceFile]) -> StoreError | None:
        """The error for the file and column that DuckDB, which names neither, stumbled over."""
        for file in files:
            for column in (column.name for column in table.columns if column.type == "JSON"):
                bad = f"FROM read_parquet(?, hive_partitioning = false) WHERE NOT json_valid({quoted(column)}) LIMIT 1"
                if self.execute(f"SELECT 1 {bad}", [str(file.place)]):
                    return StoreError(f"{file.relative} holds text that is not JSON in {column}; correct what wrote it")
        return None

    def _insert_missing(self, table: Table, files: Sequence[SourceFile]) -> int:
        """Adds rows that are referred to and not there yet.

        Row numbers are joined instead of rows, which may be large.
        """
        unique = quoted(table.unique)
        source = "read_parquet(?, hive_partitioning = false, file_row_number = true)"
        select = (
            f"SELECT {_columns(table)} FROM {source} WHERE file_row_number IN ("
            f"SELECT min(new.file_row_number) FROM {source} AS new "
            f"WHERE EXISTS (FROM {quoted(table.referenced_by)} AS user WHERE user.{unique} = new.{unique}) "
            f"AND NOT EXISTS (FROM {quoted(table.name)} AS old WHERE old.{unique} = new.{unique}) "
            f"GROUP BY new.{unique})"
        )
        return sum(self._add(select, [str(file.place)] * 2, table, [file]) for file in files)

    def _drop_orphans(self, table: Table) -> None:
        unique = quoted(table.unique)
        self.execute(
            f"DELETE FROM {quoted(table.name)} AS row WHERE NOT EXISTS "
            f"(FROM {quoted(table.referenced_by)} AS user WHERE user.{unique} = row.{unique})"
        )

    def _remember(self, changes: Sequence[Change]) -> None:
        was = [path for change in changes for path in change.was]
        if was:
            self.execute("DELETE FROM meta.files WHERE path IN (SELECT unnest(?))", [was])
        facts = [list(column) for column in zip(*(f.facts() for c in changes for f in c.files), strict=True)]
        if facts:
            self.execute(f"INSERT INTO meta.files SELECT {', '.join('unnest(?)' for _ in facts)}", facts)


@contextmanager
def engine(beside: Path, memory_mb: int | None) -> Iterator["duckdb.DuckDBPyConnection"]:
    """DuckDB set up to spend little: one thread (more cost CPU without being faster here) and bounded memory.

    Args:
        beside: the file that is written; what does not fit into memory goes beside it.
        memory_mb: None leaves the bound to DuckDB, which takes most of what the machine has.
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
            "fsync_mode": "NONE",  # no one sees the file before it is whole; it is fsynced once, then
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        },
    )
    try:
        yield connection
    finally:
        connection.close()
        shutil.rmtree(spill, ignore_errors=True)


@contextmanager
def opened(connection: "duckdb.DuckDBPyConnection", path: Path) -> Iterator[Snapshot]:
    """The store file, attached for the time of the block."""
    snapshot = Snapshot(connection, path)
    try:
        snapshot.attach(_ROW_GROUP)
        yield snapshot
    except BaseException:
        with suppress(Exception):  # the first error tells; this one would be a consequence
            connection.execute("ROLLBACK")
        raise
    finally:
        with suppress(Exception):
            snapshot.detach()


def ordered(changes: Sequence[Change], track_tables: Sequence[Table]) -> list[Change]:
    """The changes in the order in which rows are stored: tables as declared, keys sorted."""
    places = {table.name: place for place, table in enumerate(all_tables(track_tables))}
    return sorted(changes, key=lambda change: (places[change.table.name], change.key.order()))


def _with_many_short_rows(changes: Sequence[Change]) -> set[str]:
    """Names of the tables that get large row groups; never a shared one or one that says which rows of it are used."""
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


def _columns(table: Table) -> str:
    return ", ".join(quoted(column.name) for column in table.all_columns)
