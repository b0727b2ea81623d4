"""Which rows of a shared table a part holds: those referred to, each once, in the order of the files."""

import tempfile
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.store.catalog import parts

IDS = st.lists(st.sampled_from("abcdef"), max_size=8)


@given(st.lists(IDS, min_size=1, max_size=3), IDS)
def test_the_first_row_of_each_id_that_is_referred_to(files: list[list[str]], referred: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder, f"{number}.parquet") for number in range(len(files) + 1)]
        for place, ids in zip(places, [*files, referred], strict=True):
            pq.write_table(pa.table({"id": pa.array(ids, pa.string())}), place)
        with duckdb.connect() as connection:
            chosen = parts._first_of_each(connection, places[:-1], "id", places[-1])
    seen, expected = set[str](), list[list[bool]]()
    for ids in files:
        expected.append([])
        for one in ids:
            expected[-1].append(one in referred and one not in seen)
            seen.add(one)
    assert [mine.tolist() for mine in chosen] == expected
