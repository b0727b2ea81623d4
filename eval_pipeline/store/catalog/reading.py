"""What readers of a catalog are allowed: its parts, for reading."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.store.catalog.parts import digest
from eval_pipeline.store.catalog.sweeping import hold_open, part_files
from eval_pipeline.store.catalog.views import parts_folder
from eval_pipeline.store.published.ddl import text
from eval_pipeline.store.published.form import catalog_folder

if TYPE_CHECKING:
    import duckdb

_READING = frozenset({
    "ALTER", "ANALYZE", "CALL", "CREATE", "DELETE", "DETACH", "DROP", "EXPLAIN", "INSERT", "MERGE_INTO", "MULTI",
    "SELECT", "SET", "TRANSACTION", "UPDATE", "VACUUM",
})  # fmt: skip
"""Statements that reach no file but the parts; the others could write into their folder.

DuckDB lets readers reach the folder without distinction. The store itself is attached for reading only.
"""
_FROM_TEXT = frozenset({"json_execute_serialized_sql", "query"})
"""Functions that run SQL which their arguments hide."""


def allow_parts(connection: "duckdb.DuckDBPyConnection", store: Path) -> None:
    """Allows a connection to read the parts of an attached catalog, and locks that.

    Raises:
        StoreError: the store was moved without being published again, or its parts are lost.
    """
    parts, here = parts_folder(connection), catalog_folder(store) / "parts"
    if not here.is_dir():
        raise StoreError(f"{here}, which {store} reads, is missing; `eval-pipeline publish --full` makes it anew")
    if not (parts.exists() and parts.samefile(here)):
        raise StoreError(f"{store} was moved and still reads {parts}; run `eval-pipeline publish`")
    hold_open(connection, store)
    connection.execute(f"SET allowed_directories = [{text(str(parts))}]")


def damaged_part(store: Path) -> Path | None:
    """Returns a part on the disk whose bytes are not those that it is named by; None if there is none."""
    folder = catalog_folder(store) / "parts"
    for place in part_files(folder):
        path = (folder / place).with_suffix(".parquet")
        with suppress(OSError):  # removed meanwhile
            if digest(path) != path.stem:
                return path
    return None


def refuse_writing(connection: "duckdb.DuckDBPyConnection", sql: str) -> None:
    """Raises UsageError for statements that could change parts; duckdb.Error for what is not SQL."""
    for statement in connection.extract_statements(sql):
        try:
            kind = statement.type.name
        except ValueError:  # DuckDB has statements whose type its Python package does not know
            kind = "this statement"
        if kind not in _READING:
            raise _refusal(kind)
    # COPY may also be in a WITH clause, or behind EXPLAIN ANALYZE.
    words = list(_words(sql))
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name = word.strip('"').lower()
        if word.lower() == "copy" or (name in _FROM_TEXT and following.startswith("(")):
            raise _refusal(name if name in _FROM_TEXT else "COPY")


def _refusal(what: str) -> UsageError:
    return UsageError(f"{what} is not possible here: the store is only read")


def _words(sql: str) -> Iterator[str]:
    """Yields the words and signs of a query, without comments and texts; names in quotes keep them."""
    import duckdb

    found, data = duckdb.tokenize(sql), sql.encode()
    ends = [place for place, _ in found[1:]] + [len(data)]
    for (start, kind), end in zip(found, ends, strict=True):
        if kind not in (duckdb.token_type.comment, duckdb.token_type.string_const):
            yield data[start:end].decode(errors="replace").strip()
