"""A model version that leaves: what only its responses say, and where they are found."""

import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from eval_pipeline.core.model import Response
from eval_pipeline.operations.purging import Removal
from eval_pipeline.operations.removing import Removed, remove
from eval_pipeline_tests.support import DAY, Lab, response

MARKER = "zebra-quartz-7391"
"""What only the responses of `leaving` say."""
NEXT = DAY + timedelta(days=1)
WITH_TEXT = "unreadable, it says {}"


def places_of(home: Path, marker: str) -> list[str]:
    """Files below a folder that hold the text, whatever form they have: bytes, Parquet, DuckDB, SQLite, zip."""
    return sorted({str(path.relative_to(home)) for path in home.rglob("*") if path.is_file() and _holds(path, marker)})


def _holds(path: Path, marker: str) -> bool:
    data = path.read_bytes()
    wide = (marker.encode(), marker.encode("utf-16-le"))
    return any(text in data for text in wide) or any(marker in text for text in _texts(path, data))


def _texts(path: Path, data: bytes) -> Iterator[str]:
    if data[:4] == b"PAR1":
        yield str(pq.ParquetFile(path).read().to_pylist())
    elif data[8:12] == b"DUCK":
        with duckdb.connect(str(path), read_only=True) as store:
            for schema, name in store.execute("SELECT schema_name, table_name FROM duckdb_tables()").fetchall():
                yield str(store.execute(f'SELECT * FROM "{schema}"."{name}"').fetchall())
    elif data[:2] == b"PK":
        with zipfile.ZipFile(path) as book:
            yield from (book.read(name).decode("utf-8", "replace") for name in book.namelist())
    elif data[:15] == b"SQLite format 3":
        with closing(sqlite3.connect(path)) as connection:
            yield "\n".join(connection.iterdump())


def answer_of(name: str) -> Callable[[object], Response]:
    return lambda call: response(WITH_TEXT.format(name))


def removed(lab: Lab, *, suites: tuple[str, ...] = (), purge: bool = True, dry_run: bool = False) -> Removed:
    removal = Removal("leaving", frozenset(suites) or None, purge)
    return remove(lab.workspace(), removal, dry_run=dry_run)


def names_in(lab: Lab, table: str) -> set[str]:
    columns = {"model_comparisons": "unnest([model_a, model_b])"}
    return {name for (name,) in lab.sql(f"SELECT DISTINCT {columns.get(table, 'model_version')} FROM {table}")}
