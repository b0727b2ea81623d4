"""Which rows of a shared table a part holds: those referred to, each once, in the order of the files."""

import tempfile
from pathlib import Path
from unittest.mock import patch

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.store.catalog import parts

IDS = st.lists(st.sampled_from("abcdef"), max_size=8)


@settings(max_examples=40)
@given(st.lists(IDS, min_size=1, max_size=3), IDS, st.integers(1, 30))
def test_the_first_row_of_each_id_that_is_referred_to(
    files: list[list[str]], referred: list[str], at_once: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder, f"{number}.parquet") for number in range(len(files) + 1)]
        for file, (place, ids) in enumerate(zip(places, [*files, referred], strict=True)):
            rows = [f"{file} {row}" for row in range(len(ids))]
            pq.write_table(pa.table({"id": pa.array(ids, pa.string()), "row": pa.array(rows, pa.string())}), place)
        with duckdb.connect(config={"threads": 1}) as connection, patch.object(parts, "_IDS_AT_ONCE", at_once):
            query, values = parts.rows_referred_to(connection, "id, row", places[:-1], "id", places[-1])
            found = connection.execute(query, values).fetchall()
    first: dict[str, str] = {}
    for file, ids in enumerate(files):
        for row, one in enumerate(ids):
            if one in referred:
                first.setdefault(one, f"{file} {row}")
    assert found == list(first.items())
