"""Writes Parquet files of the record."""

import hashlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eval_pipeline import __version__
from eval_pipeline.core.ids import canonical_json, without_surrogates
from eval_pipeline.store.durable import write_error
from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.parquet.reading import BLANK, SEAL, sealed
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import arrow_schema


class _NotNow:
    """An import hook that pretends that pandas is not installed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("pyarrow is to do without pandas", name=name)
        return None


def convert_without_pandas() -> None:
    """Makes pyarrow do its first conversion while pandas cannot be found; it looks for pandas only once.

    Afterwards pandas can be imported as usual, and pyarrow's conversions from and to it work.
    """
    if "pandas" in sys.modules:
        return
    hook = _NotNow()
    sys.meta_path.insert(0, hook)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(hook)


convert_without_pandas()

_ROW_GROUP_BYTES = 16 << 20
_LEAST_ROW_GROUP_BYTES = 2 << 20
"""Rows are collected up to this size, since each column of each row group has a fixed cost in writing and reading."""


class _HashingSink:
    """A file that hashes everything written to it, and whose errors name the target file.

    Exceptions raised by the caller's own code between two writes are passed on unchanged.
    """

    def __init__(self, file: BinaryIO, target: Path, seed: str) -> None:
        self._file = file
        self._target = target
        self._digest = hashlib.sha256(seed.encode())
        self._footer: bytearray | None = None
        self.closed = False

    def write(self, data: bytes) -> int:
        if self._footer is not None:
            self._footer += data
            return len(data)
        self._digest.update(data)
        return self._write(data)

    def _write(self, data: bytes) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            raise write_error(self._target, error) from error

    def tell(self) -> int:
        return self._file.tell() + len(self._footer or b"")

    def flush(self) -> None:
        """Does nothing: nobody reads the file before it is complete."""

    def close(self) -> None:
        self.closed = True

    def abandon(self) -> None:
        """Discards everything written from now on.

        Otherwise a Parquet writer would still write a footer when it is garbage-collected.
        """
        self._file, self._footer = BytesIO(), None

    def content_hash(self) -> str:
        return self._digest.hexdigest()[:32]

    def hold_footer(self) -> None:
        """Keeps everything written from now on in memory, to be sealed."""
        self._footer = bytearray()

    def write_footer(self) -> None:
        """Seals and writes what was kept."""
        assert self._footer is not None
        footer, self._footer = bytes(self._footer), None
        self._write(sealed(footer))


class TableWriter:
    """Writes the rows of one table and key; created by `Record.writer`.

    Attributes:
        size: bytes of the rows so far, before they are compressed.
    """

    def __init__(
        self, file: BinaryIO, target: Path, table: Table, key: RecordKey, made_from: Mapping[str, str]
    ) -> None:
        self._table = table
        self._schema = arrow_schema(table)
        self._key = key.values(table)
        self._made_from = made_from
        self._sink = _HashingSink(file, target, table.schema_hash())
        self._rows = self.size = self._written = 0
        self._gathered: list[pa.Table] = []
        self._writer = pq.ParquetWriter(
            self._sink,
            self._schema,
            compression="zstd",
            compression_level=1,
            # Dictionaries of long texts would be built only to be discarded; nothing reads the statistics.
            use_dictionary=[column.name for column in table.all_columns if not column.long],
            write_statistics=False,
        )

    def write(self, columns: Mapping[str, Sequence[Any] | pa.Array]) -> None:
        """Adds rows. They are collected into row groups of 2 to 16 MiB, so that readers need little memory.

        Args:
            columns: every column of the table except the key columns, all of the same length. JSON columns take JSON
                text (`canonical_json(value)`) or None; aware datetimes are stored in UTC. Lone surrogates, which models
                write but UTF-8 cannot encode, become U+FFFD.

        Raises:
            ValueError: columns are missing, unknown or of different lengths, a value is not of the column's type, or a
                number is NaN or infinite (unknown numbers must be NULL).
        """
        expected = {column.name for column in self._table.columns}
        if columns.keys() != expected:
            odd = sorted(columns.keys() ^ expected)
            raise ValueError(f"{self._table.name}: columns missing or unknown: {', '.join(odd)}")
        lengths = {len(values) for values in columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"{self._table.name}: columns of different lengths: {sorted(lengths)}")
        rows = lengths.pop() if lengths else 0
        if not rows:
            return
        arrays = [pa.repeat(pa.scalar(value, self._schema.field(name).type), rows) for name, value in self._key.items()]
        for column in self._table.columns:
            kind = self._schema.field(column.name).type
            try:
                array = arrow_array(columns[column.name], kind)
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError) as error:
                raise ValueError(f"{self._table.name}.{column.name} takes {kind}: {error}") from error
            _check(array, column.type, self._table.name, column.name)
            arrays.append(array)
        self._gathered.append(pa.Table.from_arrays(arrays, schema=self._schema))
        self.size += self._gathered[-1].nbytes
        self._rows += rows
        if self.size - self._written >= _LEAST_ROW_GROUP_BYTES:
            self._write_gathered()

    def _write_gathered(self) -> None:
        table = pa.concat_tables(self._gathered)
        pieces = min(table.num_rows, max(1, math.ceil(table.nbytes / _ROW_GROUP_BYTES)))
        self._writer.write_table(table, row_group_size=math.ceil(table.num_rows / pieces))
        self._gathered, self._written = [], self.size

    def content_hash(self) -> str:
        """Returns the hash of all rows; no rows may be added after this."""
        if self._gathered:
            self._write_gathered()
        return self._sink.content_hash()

    def finish(self, run_id: str = "") -> None:
        """Writes the footer, with the hash of everything before it and the id of the run that made the file."""
        footer = {
            "schema_version": str(self._table.version),
            "schema_hash": self._table.schema_hash(),
            "made_from": canonical_json(dict(self._made_from)),
            "content_hash": self.content_hash(),
            "rows": str(self._rows),
            "key": canonical_json({name: str(value) for name, value in self._key.items()}),
            "run_id": run_id,
            "software": f"eval-pipeline {__version__}",
            SEAL: BLANK,
        }
        self._sink.hold_footer()
        self._writer.add_key_value_metadata(footer)
        self._writer.close()
        self._sink.write_footer()

    def abandon(self) -> None:
        """Closes the file without completing it."""
        self._writer.is_open = False  # otherwise its destructor would complete the file
        self._sink.abandon()


def arrow_array(values: Sequence[Any] | pa.Array, kind: pa.DataType | None = None) -> pa.Array:
    """Converts values to an Arrow array, by default of their own type; lone surrogates become U+FFFD.

    Raises:
        pyarrow.ArrowException, OverflowError, TypeError: a value is not of the type.
    """
    if isinstance(values, pa.Array):
        return values if kind is None else values.cast(kind)
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array(without_surrogates(list(values)), kind)


def _check(array: pa.Array, kind: str, table: str, column: str) -> None:
    """Rejects NaN and infinity, also within JSON. Text that is not JSON at all is rejected when it is published."""
    if kind == "DOUBLE":
        if pc.all(pc.is_finite(array)).as_py() is False:
            raise ValueError(f"{table}.{column} holds NaN or infinity; a number the data cannot carry is None")
    elif kind == "JSON":
        # json.dumps writes NaN and infinity as these words, so only texts that contain them are parsed. Searching all
        # texts as one buffer first takes a fifth of the time.
        texts = array.buffers()[-1]
        whole = texts.to_pybytes() if texts else b""
        for word in ("NaN", "Infinity"):
            if word.encode() in whole:
                for text in array.filter(pc.match_substring(array, word)).to_pylist():
                    json.loads(text, parse_constant=lambda name: _not_json(name, table, column))


def _not_json(name: str, table: str, column: str) -> None:
    raise ValueError(f"{table}.{column} holds {name}, which is not JSON; write null")
