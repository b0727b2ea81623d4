"""The record: immutable Parquet, one file a table and key, replaced whole or not at all."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.durable import fsync_path, make_folders, replace_durably, sweep, temporary_path, write_error
from eval_pipeline.store.keys import RecordKey, key_from_folders, key_from_texts
from eval_pipeline.store.migrations import MIGRATIONS, Migration, migrate
from eval_pipeline.store.parquet import Header, TableWriter, note_written, read_header, row_groups, verify
from eval_pipeline.store.parquet.reading import damaged
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import arrow_schema

__all__ = ["Header", "Record", "RecordKey", "TableWriter"]

_FILE = "part.parquet"


class Record:
    """The Parquet files below one folder: `<table>/suite=…/model_version=…/eval_date=…/part.parquet`.

    Any number of processes may read and write at once: a file is only ever replaced by another, whole one.
    """

    def __init__(self, root: Path, migrations: Mapping[tuple[str, int], Migration] = MIGRATIONS) -> None:
        self.root = root
        self._migrations = migrations

    def path(self, table: Table, key: RecordKey) -> Path:
        """Where the file of a table and key is, whether it exists or not. Raises ValueError if they do not fit."""
        return self.root.joinpath(table.name, *key.folders(table), _FILE)

    @contextmanager
    def writer(
        self, table: Table, key: RecordKey, made_from: Mapping[str, str], run_id: str = ""
    ) -> Iterator[TableWriter]:
        """Replaces the file of a table and key by what is written inside the `with` block.

        The file appears when the block ends; if it ends with an exception, nothing has changed.

        Args:
            table: a table of the record (for `attempts` and `prompts`, one of their sources).
            key: which file of it.
            made_from: hashes of everything the rows follow from, by name; see `is_current`.
            run_id: run that writes it. A file that has the same rows already keeps the run that made them, so that
                the store, which does not take them in again, says the same.

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
        """The run that rows with this hash are of: of the file that has them already, else the one that writes."""
        with suppress(StoreError):
            earlier = read_header(path)
            if earlier is not None and earlier.content_hash == content_hash:
                return earlier.run_id
        return run_id

    def header(self, table: Table, key: RecordKey) -> Header | None:
        """What the file says of itself; None where there is none. Raises StoreError for a damaged file."""
        path = self.path(table, key)
        header = read_header(path)
        if header is not None and key_from_texts(dict(header.key)) != key:
            raise damaged(path, "it is the file of another evaluation, put there by hand")
        return header

    def states(self, tables: Sequence[Table], key: RecordKey) -> list[list[int] | None]:
        """What tells files from those that replace them: size, time of change (ns), inode; None where there is none.

        Args:
            tables: of the record, all of the same kind of key.
            key: which file of each.
        """
        place = "/".join([*key.folders(tables[0]), _FILE])
        return [_state(f"{self.root}/{table.name}/{place}") for table in tables]

    def is_current(self, table: Table, key: RecordKey, made_from: Mapping[str, str]) -> bool:
        """Whether the file has today's schema and was made from just these hashes, so that nothing need be done."""
        header = self.header(table, key)
        if header is None:
            return False
        return header.schema_hash == table.schema_hash() and dict(header.made_from) == dict(made_from)

    def read(self, table: Table, key: RecordKey, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of a file, key columns included, in today's schema.

        Args:
            table: a table of the record.
            key: which file of it.
            columns: names of those wanted, in the order wanted; all by default.

        Raises:
            StoreError: there is no such file, it is damaged, or it was written by newer code.
        """
        schema = arrow_schema(table)
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        groups = [group.cast(schema) for group in self.row_groups(table, key, schema.names)]
        return pa.concat_tables(groups)

    def row_groups(self, table: Table, key: RecordKey, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """As `read`, a row group at a time, so that a large file needs little memory; verified before the first."""
        path, header = self.path(table, key), self.header(table, key)
        if header is None:
            raise StoreError(f"{path} is not there; run the stage that makes it")
        check_readable(path, table, header)
        verify(path, header)
        if header.schema_hash == table.schema_hash():
            yield from row_groups(path, columns)
            return
        for group in row_groups(path):
            rows = migrate(group, table, header.schema_version, self._migrations)
            yield rows if columns is None else rows.select(columns)

    def verify(self, table: Table, key: RecordKey) -> Header:
        """Compares the whole file with the hashes in its footer. Raises StoreError where it is damaged."""
        path, header = self.path(table, key), self.header(table, key)
        if header is None:
            raise StoreError(f"{path} is not there; run the stage that makes it")
        verify(path, header)
        check_readable(path, table, header)
        return header

    def partitions(self, table: Table) -> list[RecordKey]:
        """Keys of the files there are, sorted."""
        return sorted((key for key, _ in self.files(table)), key=RecordKey.order)

    def files(self, table: Table) -> Iterator[tuple[RecordKey, os.stat_result]]:
        """Keys of the files there are and their file status, in no order."""
        names = [f"{column.name}=" for column in table.key_columns]
        for folders, path, status in _walk(self.root / table.name, (), len(names)):
            if not all(map(str.startswith, folders, names)):
                continue
            key = key_from_folders(folders)
            if key is None:
                header = read_header(path)
                key = key_from_texts(dict(header.key)) if header else None
            with suppress(ValueError):  # a folder that is none of ours
                if key is not None and key.folders(table) == folders:
                    yield key, status

    def remove(self, table: Table, key: RecordKey) -> bool:
        """Removes a file and folders that are then empty; whether there was one."""
        path = self.path(table, key)
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise write_error(path, error) from error
        fsync_path(path.parent)
        with suppress(OSError):  # a folder that is not empty stays, and so do those above it
            for folder in path.parents[: len(table.key_columns)]:
                folder.rmdir()
        return True


def check_readable(path: Path, table: Table, header: Header) -> None:
    """Raises StoreError for a file that newer code wrote: what it means cannot be known."""
    if header.schema_version > table.version:
        raise StoreError(f"{path} was written by a newer eval-pipeline; update this one, or remove the file")


def _walk(folder: Path, folders: tuple[str, ...], depth: int) -> Iterator[tuple[tuple[str, ...], Path, os.stat_result]]:
    """Files of the record that are `depth` folders down."""
    if not depth:
        path = folder / _FILE
        with suppress(FileNotFoundError, NotADirectoryError):
            yield folders, path, path.stat()
        return
    try:
        entries = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        yield from _walk(folder / entry, (*folders, entry), depth - 1)


def _open_aside(temporary: Path) -> BinaryIO:
    """Opens the temporary file, where another process may just be removing the empty folder."""
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
