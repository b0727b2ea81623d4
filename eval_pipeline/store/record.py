"""The record: immutable Parquet files, one for each table and key, replaced atomically."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa

from eval_pipeline.core.errors import MissingFileError, StoreError
from eval_pipeline.store.durable import fsync_path, make_folders, replace_durably, sweep, temporary_path, write_error
from eval_pipeline.store.file_status import FileStatus, file_status
from eval_pipeline.store.keys import ANY, EARLIER, RecordKey, key_from_folders, key_from_texts
from eval_pipeline.store.migrations import MIGRATIONS, Migration, in_steps, migrate
from eval_pipeline.store.parquet.reading import Header, damaged, note_written, read_header, row_groups, verify
from eval_pipeline.store.parquet.writing import TableWriter
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import arrow_schema

if TYPE_CHECKING:
    from eval_pipeline.store.published.publisher import Publisher

__all__ = ["Header", "Record", "RecordKey", "TableWriter"]

Contents = tuple[Mapping[str, str], Mapping[str, Sequence[Any]]]
"""What a file is made from, see `Record.writer`, and its columns."""

FILE = "part.parquet"
"""Name of every file of the record, in its folder."""


class Record:
    """The Parquet files below one folder: `<table>/suite=…/model_version=…/eval_date=…/part.parquet`.

    Any number of processes may read and write at once, since files are only ever replaced by complete ones.
    """

    def __init__(self, root: Path, migrations: Mapping[tuple[str, int], Migration] = MIGRATIONS) -> None:
        self.root = root
        self._migrations = migrations

    def publisher(self) -> "type[Publisher] | None":
        """Returns what publishes this record if it is not in a folder; None for the one that the environment names."""
        return None

    def path(self, table: Table, key: RecordKey) -> Path:
        """Returns the path of a table's file, whether it exists or not.

        Raises:
            ValueError: the key does not fit the table.
        """
        return _path(self.root, table.name, *key.folders(table), FILE)

    def place(self, table: Table, key: RecordKey) -> str:
        """Returns where a table's file is, for messages."""
        return str(self.path(table, key))

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
        with self._writer(table, key, made_from, run_id, self._before_writing(self.path(table, key))) as writer:
            yield writer

    def rewrite(self, table: Table, key: RecordKey, make: Callable[[], Contents | None]) -> None:
        """Replaces a file by contents that are made from its present ones; nothing is written if `make` returns None.

        Only for holders of a lock of this host on the file. If another host replaces it meanwhile, `make` is called
        again.
        """
        if (made := make()) is not None:
            with self.writer(table, key, made[0]) as writer:
                writer.write(made[1])

    @contextmanager
    def _writer(
        self, table: Table, key: RecordKey, made_from: Mapping[str, str], run_id: str, before: str | None
    ) -> Iterator[TableWriter]:
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
            _finish(file, path)
            self._put(temporary, path, before)
            note_written(path)
        except BaseException:
            if writer is not None:
                writer.abandon()
            with suppress(OSError):
                file.close()
            with suppress(OSError):
                temporary.unlink()
            raise

    def _before_writing(self, path: Path) -> str | None:
        """Returns what identifies the file that is about to be replaced, where files are not only this host's."""

    def _put(self, temporary: Path, path: Path, before: str | None) -> None:
        """Puts a file that is whole and on the disk in its place."""
        try:
            replace_durably(temporary, path)
        except OSError as error:
            raise write_error(path, error) from error

    def _made_by(self, path: Path, content_hash: str, run_id: str) -> str:
        """Returns the run id of an existing file with the same rows, else that of the writing run."""
        with suppress(StoreError):
            earlier = self._header_at(path)
            if earlier is not None and earlier.content_hash == content_hash:
                return earlier.run_id
        return run_id

    def header(self, table: Table, key: RecordKey) -> Header | None:
        """Returns the header of the file; None if the file does not exist.

        Raises:
            StoreError: the file is damaged.
        """
        path = self.path(table, key)
        header = self._header_at(path)
        if header is not None and key_from_texts(dict(header.key)) != key.of_date:
            raise damaged(path, "it is the file of another evaluation, put there by hand")
        return header

    def status(self, table: Table, key: RecordKey) -> FileStatus | None:
        """Returns what distinguishes a file from one that replaced it; None if there is none."""
        try:
            return file_status(self.path(table, key).stat())
        except FileNotFoundError:
            return None

    def states(self, tables: Sequence[Table], key: RecordKey) -> list[list[int] | None]:
        """Returns what changes when each of these files is replaced, see `status`; None for missing ones.

        Args:
            tables: tables of the record, all with the same kind of key.
            key: which file of each table.
        """
        place = "/".join([*key.folders(tables[0]), FILE])
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
            raise MissingFileError(f"{path} does not exist; run the stage that makes it")
        check_readable(path, table, header)
        verify(path, header)
        if header.schema_hash == table.schema_hash():
            yield from row_groups(path, columns, chosen)
            return
        for group in row_groups(path, chosen=chosen):
            rows = migrate(group, table, header.schema_version, self._migrations)
            yield rows if columns is None else rows.select(columns)

    def known(self, table: Table, key: RecordKey) -> frozenset[str]:
        """Returns the columns that a file has, or gets by migrations; the table's others are NULL in it.

        Raises:
            StoreError: the file does not exist or is damaged.
        """
        path, header = self.path(table, key), self.header(table, key)
        if header is None:
            raise MissingFileError(f"{path} does not exist; run the stage that makes it")
        if header.schema_hash == table.schema_hash():
            return frozenset(column.name for column in table.all_columns)
        from pyarrow.parquet import read_schema

        rows = read_schema(path).empty_table()
        return frozenset(in_steps(rows, table, header.schema_version, self._migrations).column_names)

    def verify(self, table: Table, key: RecordKey) -> Header:
        """Compares the whole file with the hashes in its footer.

        Raises:
            StoreError: the file is damaged, or (MissingFileError) does not exist.
        """
        path, header = self.path(table, key), self.header(table, key)
        if header is None:
            raise MissingFileError(f"{path} does not exist; run the stage that makes it")
        verify(path, header)
        check_readable(path, table, header)
        return header

    def examine(self, table: Table, key: RecordKey) -> Header:
        """Like `verify`, but reads what is in a bucket from there, whatever this host has of it."""
        return self.verify(table, key)

    def set_aside(self, table: Table, key: RecordKey, folder: Path) -> None:
        """Moves a file that is damaged into a folder, where it keeps its path."""
        path = self.path(table, key)
        if path.exists():
            target = folder / path.relative_to(self.root)
            make_folders(target.parent)
            path.replace(target)
            fsync_path(target.parent)

    def duplicate(self, table: Table, key: RecordKey, to: RecordKey) -> None:
        """Makes a file that is whole that of another key, too, in the place of any that is there."""
        path, target = self.path(table, key), self.path(table, to)
        temporary = temporary_path(target)
        try:
            make_folders(target.parent)
            os.link(path, temporary)
            self._put(temporary, target, self._before_writing(target))
        except OSError as error:
            raise write_error(target, error) from error
        finally:
            temporary.unlink(missing_ok=True)  # renaming a link to what it links to does nothing

    def partitions(self, table: Table, within: RecordKey = ANY, *, earlier: bool = False) -> list[RecordKey]:
        """Returns the keys of all existing files of a table, sorted.

        Args:
            table: a table of the record.
            within: only keys with the parts that this one has; only their folders are looked into.
            earlier: those of earlier evaluations, instead of the newest of each date.
        """
        return sorted((key for key, _ in self.files(table, within, earlier=earlier)), key=RecordKey.order)

    def files(
        self, table: Table, within: RecordKey = ANY, *, earlier: bool = False
    ) -> Iterator[tuple[RecordKey, FileStatus]]:
        """Like `partitions`, but yields each key with its file's status, unordered."""
        names = [*(f"{column.name}=" for column in table.key_columns), *[EARLIER] * earlier]
        for folders, status in self._listed(table, (*within.wanted_folders(table), *[None] * earlier)):
            if len(folders) != len(names) or not all(map(str.startswith, folders, names)):
                continue
            key = key_from_folders(folders[: len(table.key_columns)])
            if key is None:
                header = self._header_at(self.root.joinpath(table.name, *folders, FILE))
                key = key_from_texts(dict(header.key)) if header else None
            if key is not None and earlier:
                key = replace(key, evaluation=folders[-1].removeprefix(EARLIER))
            with suppress(ValueError):  # a folder not made by the record
                if key is not None and key.folders(table) == folders and within.holds(key):
                    yield key, status

    def _listed(self, table: Table, wanted: tuple[str | None, ...]) -> Iterator[tuple[tuple[str, ...], FileStatus]]:
        """Yields the folders and status of each file of a table in wanted folders, None for any, and perhaps others."""
        for folders, path_status in _walk(self.root / table.name, (), wanted):
            yield folders, file_status(path_status)

    def _header_at(self, path: Path) -> Header | None:
        return read_header(path)

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
            for folder in path.parents[: len(key.folders(table))]:
                folder.rmdir()
        return True


@lru_cache(4096)
def _path(root: Path, *parts: str) -> Path:
    return root.joinpath(*parts)


def check_readable(path: Path, table: Table, header: Header) -> None:
    """Raises StoreError for a file written by a newer version, whose meaning is unknown."""
    if header.schema_version > table.version:
        raise StoreError(f"{path} was written by a newer eval-pipeline; update this one, or remove the file")


def _walk(
    folder: Path, folders: tuple[str, ...], wanted: tuple[str | None, ...]
) -> Iterator[tuple[tuple[str, ...], os.stat_result]]:
    """Yields the record files as many folders down as `wanted` has entries; a name there is the only one entered."""
    if not wanted:
        path = folder / FILE
        with suppress(FileNotFoundError, NotADirectoryError):
            yield folders, path.stat()
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


def _finish(file: BinaryIO, path: Path) -> None:
    try:
        file.flush()
        os.fsync(file.fileno())
        file.close()
    except OSError as error:
        raise write_error(path, error) from error


def _state(path: str) -> list[int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return [status.st_size, status.st_mtime_ns, status.st_ino]
