"""The record: immutable Parquet files, one for each table and key, replaced atomically."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.durable import fsync_path, make_folders, replace_durably, sweep, temporary_path, write_error
from eval_pipeline.store.keys import ANY, RecordKey, key_from_folders, key_from_texts
from eval_pipeline.store.migrations import MIGRATIONS, Migration, migrate
from eval_pipeline.store.parquet import Header, TableWriter, note_written, read_header, row_groups, verify
from eval_pipeline.store.parquet.reading import damaged
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import arrow_schema

__all__ = ["Header", "Record", "RecordKey", "TableWriter"]

_FILE = "part.parquet"


class Record:
    """The Parquet files below one folder: `<table>/suite=…/model_version=…/eval_date=…/part.parquet`.

    Any number of processes may read and write at once, since files are only ever replaced by complete ones.
    """

    def __init__(self, root: Path, migrations: Mapping[tuple[str, int], Migration] = MIGRATIONS) -> None:
        self.root = root
        self._migrations = migrations

    def path(self, table: Table, key: RecordKey) -> Path:
        """Returns the path of a table's file, whether it exists or not.

        Raises:
            ValueError: the key does not fit the table.
        """
        return self.root.joinpath(table.name, *key.folders(table), _FILE)

    @contextmanager
    def writer(
        self, table: Table, key: RecordKey, made_from: Mapping[str, str], run_id: str = ""
    ) -> Iterator[TableWriter]:
        """Replaces the file of a table and key by what is written inside the `with` block.

        The file appears when the block ends; if it ends with an exception, nothing changes.

        Args:
            table: a table of the record (for `attempts` and `prompts`, one of their sources).
            key: which file of the table.
            made_from: hashes of everything the rows are computed from, by name, as they are when the block ends; see
                `is_current`.
            run_id: id of the writing run. If the existing file has the same rows, it keeps its run id: the store does
                not load those rows again, and record and store must agree.

        Raises:
            StoreError: the file cannot be written.
        """
        path = self.path(table, key)
        temporary = temporary_path(path)
        try:
            file = _open_aside(temporary)
        except OSError as error:
            raise write_error(path, error) from error
        writer: TableWriter | None = None
        try:
            writer = TableWriter(file, path, table, key, made_from)
            yield writer
            writer.finish(self._made_by(path, writer.content_hash(), run_id))
            _commit(file, temporary, path)
            note_written(path)
        except BaseException:
            if writer is not None:
                writer.abandon()
            with suppress(OSError):
                file.close()
            with suppress(OSError):
                temporary.unlink()
            raise

    @staticmethod
    def _made_by(path: Path, content_hash: str, run_id: str) -> str:
        """Returns the run id of an existing file with the same rows, else that of the writing run."""
        with suppress(StoreError):
            earlier = read_header(path)
            if earlier is not None and earlier.content_hash == content_hash:
                return earlier.run_id
        return run_id

    def header(self, table: Table, key: RecordKey) -> Header | None:
        """Returns the header of the file; None if the file does not exist.

        Raises:
            StoreError: the file is damaged.
        """
        path = self.path(table, key)
        header = read_header(path)
        if header is not None and key_from_texts(dict(header.key)) != key:
            raise damaged(path, "it is the file of another evaluation, put there by hand")
        return header

    def states(self, tables: Sequence[Table], key: RecordKey) -> list[list[int] | None]:
        """Returns size, modification time (ns) and inode of each file, which change when it is replaced.

        None for missing ones.

        Args:
            tables: tables of the record, all with the same kind of key.
            key: which file of each table.
        """
        place = "/".join([*key.folders(tables[0]), _FILE])
        return [_state(f"{self.root}/{table.name}/{place}") for table in tables]

    def is_current(self, table: Table, key: RecordKey, made_from: Mapping[str, str]) -> bool:
        """Whether the file has the current schema and was made from exactly these hashes, so that it is up to date."""
        header = self.header(table, key)
        if header is None:
            return False
        return header.schema_hash == table.schema_hash() and dict(header.made_from) == dict(made_from)

    def read(self, table: Table, key: RecordKey, columns: Sequence[str] | None = None) -> pa.Table:
        """Returns the rows of a file, including key columns, in the current schema.

        Args:
            table: a table of the record.
            key: which file of the table.
            columns: names of the wanted columns, in order; all by default.

        Raises:
            StoreError: the file does not exist, is damaged, or was written by a newer version.
        """
        schema = arrow_schema(table)
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        groups = [group.cast(schema) for group in self.row_groups(table, key, schema.names)]
        return pa.concat_tables(groups)

    def row_groups(
        self,
        table: Table,
        key: RecordKey,
        columns: Sequence[str] | None = None,
        chosen: Collection[int] | None = None,
    ) -> Iterator[pa.Table]:
        """Like `read`, but yields one row group at a time to save memory; the file is verified first.

        `chosen` are the numbers of the wanted row groups; all by default.
        """
        path, header = self.path(table, key), self.header(table, key)
        if header is None:
            raise StoreError(f"{path} does not exist; run the stage that makes it")
        check_readable(path, table, header)
        verify(path, header)
        if header.schema_hash == table.schema_hash():
            yield from row_groups(path, columns, chosen)
            return
        for group in row_groups(path, chosen=chosen):
            rows = migrate(group, table, header.schema_version, self._migrations)
            yield rows if columns is None else rows.select(columns)

    def verify(self, table: Table, key: RecordKey) -> Header:
        """Compares the whole file with the hashes in its footer.

        Raises:
            StoreError: the file does not exist or is damaged.
        """
        path, header = self.path(table, key), self.header(table, key)
        if header is None:
            raise StoreError(f"{path} does not exist; run the stage that makes it")
        verify(path, header)
        check_readable(path, table, header)
        return header

    def partitions(self, table: Table, within: RecordKey = ANY) -> list[RecordKey]:
        """Returns the keys of all existing files of a table, sorted.

        Args:
            table: a table of the record.
            within: only keys with the parts that this one has; only their folders are looked into.
        """
        return sorted((key for key, _ in self.files(table, within)), key=RecordKey.order)

    def files(self, table: Table, within: RecordKey = ANY) -> Iterator[tuple[RecordKey, os.stat_result]]:
        """Like `partitions`, but yields each key with its file status, unordered."""
        names = [f"{column.name}=" for column in table.key_columns]
        for folders, path, status in _walk(self.root / table.name, (), within.wanted_folders(table)):
            if not all(map(str.startswith, folders, names)):
                continue
            key = key_from_folders(folders)
            if key is None:
                header = read_header(path)
                key = key_from_texts(dict(header.key)) if header else None
            with suppress(ValueError):  # a folder not made by the record
                if key is not None and key.folders(table) == folders and within.holds(key):
                    yield key, status

    def remove(self, table: Table, key: RecordKey) -> bool:
        """Removes a file and the folders that become empty; returns whether the file existed."""
        path = self.path(table, key)
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise write_error(path, error) from error
        fsync_path(path.parent)
        with suppress(OSError):  # a folder that is not empty stays, and so do its parents
            for folder in path.parents[: len(table.key_columns)]:
                folder.rmdir()
        return True


def check_readable(path: Path, table: Table, header: Header) -> None:
    """Raises StoreError for a file written by a newer version, whose meaning is unknown."""
    if header.schema_version > table.version:
        raise StoreError(f"{path} was written by a newer eval-pipeline; update this one, or remove the file")


def _walk(
    folder: Path, folders: tuple[str, ...], wanted: tuple[str | None, ...]
) -> Iterator[tuple[tuple[str, ...], Path, os.stat_result]]:
    """Yields the record files as many folders down as `wanted` has entries; a name there is the only one entered."""
    if not wanted:
        path = folder / _FILE
        with suppress(FileNotFoundError, NotADirectoryError):
            yield folders, path, path.stat()
        return
    try:
        entries = sorted(os.listdir(folder)) if wanted[0] is None else [wanted[0]]
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        yield from _walk(folder / entry, (*folders, entry), wanted[1:])


def _open_aside(temporary: Path) -> BinaryIO:
    """Opens the temporary file; tries again if another process has just removed the empty folder."""
    for _ in range(10):
        make_folders(temporary.parent)
        with suppress(FileNotFoundError):
            sweep(temporary.parent)
            return temporary.open("xb")
    raise FileNotFoundError(2, "its folder is removed again and again")


def _commit(file: BinaryIO, temporary: Path, path: Path) -> None:
    try:
        file.flush()
        os.fsync(file.fileno())
        file.close()
        replace_durably(temporary, path)
    except OSError as error:
        raise write_error(path, error) from error


def _state(path: str) -> list[int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return [status.st_size, status.st_mtime_ns, status.st_ino]
