"""Converts tables to the form in which they are sent to the sandbox."""

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

FORMATS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv"}


@dataclass(frozen=True, slots=True)
class PackedTables:
    """Tables in the form that the zygote reads.

    Attributes:
        key: the same for equal tables; a zygote that already has them does not get them again.
        described: name, format and size of each table, in the order of `body`.
    """

    key: str
    described: tuple[Mapping[str, Any], ...]
    body: bytes


NO_TABLES = PackedTables("", (), b"")


def pack(tables: Mapping[str, "pd.DataFrame | Path"]) -> PackedTables:
    """Packs DataFrames and files (Parquet, CSV) by name.

    Raises:
        ValueError: a name is not an identifier, or a file has another format.
        OSError: a file cannot be read.
    """
    if not tables:
        return NO_TABLES
    described, bodies = [], []
    for name, table in tables.items():
        if not name.isidentifier():
            raise ValueError(f"a table must have an identifier for a name, not '{name}'")
        form, body = _file(table) if isinstance(table, Path) else ("pickle", _pickled(table))
        described.append({"name": name, "format": form, "bytes": len(body)})
        bodies.append(body)
    digest = hashlib.sha256(repr(described).encode())
    for body in bodies:
        digest.update(body)
    return PackedTables(digest.hexdigest(), tuple(described), b"".join(bodies))


def _file(path: Path) -> tuple[str, bytes]:
    if path.suffix not in FORMATS:
        raise ValueError(f"{path}: a table is a file that ends with {', '.join(FORMATS)}")
    found = path.stat()
    return FORMATS[path.suffix], _contents(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=16)
def _contents(path: Path, _changed: int, _size: int) -> bytes:
    return path.read_bytes()


def _pickled(frame: "pd.DataFrame") -> bytes:
    # Sending pickle into the jail is safe, because it is made here. Nothing from the jail is ever unpickled.
    buffer = io.BytesIO()
    frame.to_pickle(buffer)
    return buffer.getvalue()
