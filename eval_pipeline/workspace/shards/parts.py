"""Parts: what a shard of a stage has computed, kept in the home until the stage is written to the record.

A part is named by what it is made of, appears whole or not at all, and is never replaced: of two equal shards that run
at the same time, the first part wins.
"""

import hashlib
import json
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from eval_pipeline.core.errors import DamagedFileError, StoreError
from eval_pipeline.store.durable import make_folders, sweep, temporary_path, write_error
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import EVIDENCE
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs
from eval_pipeline.workspace.shards.part_files import PartFiles
from eval_pipeline.workspace.tabled.columns import GROUP, CollectedColumns, by_name

_END = "rows"
"""Key of the last line of a part, which says how many rows it has, and the SHA-256 of the lines before it."""
_TRIES = 100


def part_path(inputs: Inputs, stage: str, name: str) -> Path:
    """Returns where the part of that name is, or will be."""
    return parts_folder(inputs, stage) / f"{name}.jsonl"


def parts_folder(inputs: Inputs, stage: str) -> Path:
    """Returns the folder of a stage's parts; below the stage it is named as in the record."""
    return inputs.workspace.home.parts.joinpath(stage, *RecordKey.of(inputs.place).folders(EVIDENCE))


class PartOutputs(Outputs):
    """Outputs of a shard, which go to its part instead of to the record."""

    def __init__(self, inputs: Inputs, tables: Sequence[Table], stack: ExitStack, file: TextIO) -> None:
        super().__init__(inputs, tables, {}, stack)
        self._file = file
        self._digest = hashlib.sha256()
        self._written = 0

    def rows(self, table: Table, group: int = GROUP) -> CollectedColumns[Mapping[str, Any]]:
        """Returns a writer that takes rows."""
        columns = CollectedColumns(_PartTable(self, table.name), by_name, group)
        self._rows.append(columns)
        return columns

    def keep(self, tables: Sequence[Table], made: Any) -> None:
        """Does nothing: the next stage runs elsewhere."""

    def line(self, table: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """Writes rows of a table, as columns."""
        text = json.dumps({"table": table, "columns": columns}) + "\n"
        self._file.write(text)
        self._digest.update(text.encode())
        self._written += len(next(iter(columns.values())))

    def end(self) -> None:
        """Writes the last line."""
        self.flush()
        self._file.write(json.dumps({_END: self._written, "sha256": self._digest.hexdigest()}) + "\n")


class _PartTable:
    def __init__(self, part: PartOutputs, table: str) -> None:
        self._part, self._table = part, table

    def write(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self._part.line(self._table, columns)


@contextmanager
def open_part(inputs: Inputs, tables: Sequence[Table], path: Path) -> Iterator[PartOutputs]:
    """Opens a part; it appears when the block ends normally, unless another process has put it there meanwhile.

    Raises:
        StoreError: it cannot be written.
    """
    temporary = temporary_path(path)
    try:
        with _opened(temporary) as file, ExitStack() as stack:
            sweep(path.parent)
            outputs = PartOutputs(inputs, tables, stack, file)
            yield outputs
            outputs.end()
            file.flush()
            os.fsync(file.fileno())
        inputs.workspace.place.parts().put(temporary, path)
    except OSError as error:
        raise write_error(path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def _opened(path: Path) -> TextIO:
    """Makes a file and its folder, which another run removes if it is empty when that run ends."""
    for _ in range(_TRIES):
        with suppress(FileNotFoundError):
            make_folders(path.parent)
            return path.open("x", encoding="utf-8")
    raise StoreError(f"cannot make {path}: its folder is removed again and again")


def part_rows(files: PartFiles, path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the rows of a part, each with the name of its table, in the order in which they were written per table.

    Raises:
        StoreError: there is no such part.
        DamagedFileError: the part is not whole; it is removed, so that it is computed again.
    """
    with files.opened(path) as file:
        if file is None:
            raise StoreError(
                f"a worker has computed {files.place(path)}, but it is not there; "
                "give workers the same home at the same path"
            )
        if not (yield from _rows_of(file)):
            files.remove(path)
            raise DamagedFileError(
                f"{files.place(path)} is not what was written to it; it is removed, run again to compute it again"
            )


def _rows_of(path: Path) -> Generator[tuple[str, Mapping[str, Any]], None, bool]:
    """Yields the rows of a part; returns whether it is whole."""
    found, digest, end = 0, hashlib.sha256(), None
    try:
        with path.open("rb") as file:
            for text in file:
                line = json.loads(text)
                if _END in line:
                    end = line
                    break
                digest.update(text)
                names = list(line["columns"])
                for values in zip(*line["columns"].values(), strict=True):
                    found += 1
                    yield line["table"], dict(zip(names, values, strict=True))
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return end == {_END: found, "sha256": digest.hexdigest()}
