"""The rows of a part of a shared table: those that its key refers to, each once.

They are chosen by their ids alone and then copied as a stream: a join in DuckDB writes all texts to disk.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from eval_pipeline.store.published.ddl import quoted, text
from eval_pipeline.store.published.snapshot import PLACE

if TYPE_CHECKING:
    import duckdb

_IDS_AT_ONCE, _MOST_SHARES = 200_000, 32
"""Ids that are compared at once with those that refer to them; more where all would be read more often than this."""


def rows_referred_to(
    connection: "duckdb.DuckDBPyConnection", columns: str, places: Sequence[Path], unique: str, referring: Path
) -> tuple[str, list[object]]:
    """Returns a query and its values: the first row, in all files, with each id that is referred to, in order.

    Args:
        connection: DuckDB.
        columns: what to select of each row.
        places: files of the record with the rows.
        unique: name of the column with the ids.
        referring: the part that refers to them by a column of that name.
    """
    names, starts = [str(place) for place in places], _starts(places)
    bits = np.packbits(_first_of_each(connection, names, starts, unique, referring)).tobytes()
    source = f"read_parquet(?, hive_partitioning = false, filename = {text(PLACE)}, file_row_number = true)"
    row = f"(file_row_number + map(?::VARCHAR[], ?::BIGINT[])[{quoted(PLACE)}])::INTEGER"
    chosen = f"SELECT {columns} FROM {source} WHERE get_bit(?::BLOB::BIT, {row}) = 1"
    return chosen, [names, bits, names, starts[:-1]]


def _starts(places: Sequence[Path]) -> list[int]:
    """Returns the number of rows before each file, and that of all."""
    return [0, *np.cumsum([pq.read_metadata(place).num_rows for place in places]).tolist()]


def _first_of_each(
    connection: "duckdb.DuckDBPyConnection", names: Sequence[str], starts: Sequence[int], unique: str, referring: Path
) -> NDArray[np.bool_]:
    """Returns which rows of all files are the first with an id that is referred to.

    Ids are looked at a share at a time, by their hash: all of a million would not fit into DuckDB's memory.
    """
    shares = min(_MOST_SHARES, -(-starts[-1] // _IDS_AT_ONCE))
    mine = f"WHERE hash({quoted(unique)}) % {shares} = ?"
    each = " UNION ALL ".join(
        f"SELECT {quoted(unique)} AS id, {start} + file_row_number AS row "
        f"FROM read_parquet(?, file_row_number = true) {mine}"
        for start in starts[:-1]
    )
    wanted = f"SELECT {quoted(unique)} FROM read_parquet(?) {mine}"
    sql = f"SELECT min(row) AS first FROM ({each}) WHERE id IN ({wanted}) GROUP BY id"
    chosen = np.zeros(max(1, starts[-1]), dtype=bool)  # DuckDB knows no empty sequence of bits
    for share in range(shares):
        values = [value for place in (*names, str(referring)) for value in (place, share)]
        chosen[connection.execute(sql, values).fetchnumpy()["first"]] = True
    return chosen
