"""What a catalog has, for tests."""

from pathlib import Path
from typing import Any

from eval_pipeline.store.catalog import sweeping
from eval_pipeline.store.catalog.manifests import Manifests
from eval_pipeline.store.catalog.views import catalog_hash
from eval_pipeline.store.record import Record
from eval_pipeline_tests.store.samples import TRACKS, ask, contents

DEFINED = {
    "meta.files": "FROM meta.files",
    "views": "SELECT schema_name, view_name, sql FROM duckdb_views() WHERE database_name = 'store' AND NOT internal "
    "AND NOT contains(sql, 'parts.') AND NOT contains(sql, 'read_parquet')",
    "macros": "SELECT function_name, parameters, macro_definition FROM duckdb_functions() "
    "WHERE database_name = 'store'",
}
State = dict[str, list[tuple[Any, ...]]]
Full = tuple[Record, Path]


def defined(store: Path) -> State:
    """The definitions of everything but the tables, which decide what that has."""
    return {name: sorted(ask(store, sql), key=repr) for name, sql in DEFINED.items()}


def state(store: Path) -> State:
    """All rows of all tables, and what is defined."""
    return contents(store) | defined(store)


def parts_of(out: Path) -> set[str]:
    return set(sweeping.part_files(out.parent / "catalog" / "parts"))


def named_parts(out: Path) -> set[str]:
    """The parts that its manifests name: no others should be left."""
    return set(Manifests.load(out.parent / "catalog" / "manifests", catalog_hash(TRACKS)).places())
