"""Tables as they come from outside."""

import io
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class PackedFiles:
    """Tables in the form of files.

    Attributes:
        described: name, format and number of bytes of each.
        body: one file after the other.
    """

    described: list[dict[str, Any]] = field(default_factory=list)
    body: bytes = b""


def read_tables(packed: PackedFiles) -> dict[str, Any]:
    """Returns the tables by name. Raises a ValueError if one cannot be read."""
    import pandas as pd

    readers: dict[str, Any] = {"parquet": pd.read_parquet, "csv": pd.read_csv, "pickle": pd.read_pickle}
    tables, start = {}, 0
    for table in packed.described:
        end = start + table["bytes"]
        try:
            tables[table["name"]] = readers[table["format"]](io.BytesIO(packed.body[start:end]))
        except Exception as error:  # the exceptions of these readers have no common base class
            raise ValueError(f"table '{table['name']}' cannot be read as {table['format']}: {error}") from None
        start = end
    return tables
