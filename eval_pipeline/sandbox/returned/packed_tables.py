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
        described: name, format and size of each table, in the order of `bodies`.
        bodies: the tables.
    """

    key: str
    described: tuple[Mapping[str, Any], ...]
    bodies: tuple[bytes, ...]

    @property
    def body(self) -> bytes:
        """All tables, as they are sent."""
        return b"".join(self.bodies)


NO_TABLES = PackedTables("", (), ())


def pack(tables: Mapping[str, "pd.DataFrame | Path"]) -> PackedTables:
    """Packs DataFrames and files (Parquet, CSV) by name.

    Raises:
        ValueError: a name is not an identifier, or a file has another format.
        OSError: a file cannot be read.
    """
    if not tables:
        return NO_TABLES
    described, bodies, digests = [], [], []
    for name, table in tables.items():
        if not name.isidentifier():
            raise ValueError(f"a table must have an identifier for a name, not '{name}'")
        form, (body, digest) = _file(table) if isinstance(table, Path) else ("pickle", _with_digest(_pickled(table)))
        described.append({"name": name, "format": form, "bytes": len(body)})
        bodies.append(body)
        digests.append(digest)
    key = hashlib.sha256(repr([described, digests]).encode()).hexdigest()
    return PackedTables(key, tuple(described), tuple(bodies))


def _file(path: Path) -> tuple[str, tuple[bytes, bytes]]:
    if path.suffix not in FORMATS:
        raise ValueError(f"{path}: a table is a file that ends with {', '.join(FORMATS)}")
    found = path.stat()
    return FORMATS[path.suffix], _contents(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=16)
def _contents(path: Path, _changed: int, _size: int) -> tuple[bytes, bytes]:
    return _with_digest(path.read_bytes())


def _with_digest(body: bytes) -> tuple[bytes, bytes]:
    return body, hashlib.sha256(body).digest()


def _pickled(frame: "pd.DataFrame") -> bytes:
    # Sending pickle into the jail is safe, because it is made here. Nothing from the jail is ever unpickled.
    buffer = io.BytesIO()
    frame.to_pickle(buffer)
    return buffer.getvalue()
