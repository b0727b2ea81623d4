"""What a catalog has, for tests."""

from pathlib import Path
from typing import Any

from eval_pipeline.store.catalog import sweeping
from eval_pipeline_tests.store.samples import ask, contents

DEFINED = {
    "meta.files": "FROM meta.files",
    "views": "SELECT schema_name, view_name, sql FROM duckdb_views() WHERE database_name = 'store' AND NOT internal "
    "AND NOT contains(sql, 'read_parquet')",
    "macros": "SELECT function_name, parameters, macro_definition FROM duckdb_functions() "
    "WHERE database_name = 'store'",
}
State = dict[str, list[tuple[Any, ...]]]


def state(store: Path) -> State:
    """All rows of all tables, and the definitions of everything else, which decide what that has."""
    return contents(store) | {name: sorted(ask(store, sql), key=repr) for name, sql in DEFINED.items()}


def parts_of(out: Path) -> set[str]:
    return set(sweeping.part_files(out.parent / "catalog" / "parts"))
