"""The two forms of the published store: one self-contained file, or a catalog over immutable parts (docs/scale.md)."""

import os
from pathlib import Path

from eval_pipeline.core.errors import UsageError

VARIABLE = "EVAL_STORE"
FILE, CATALOG = "file", "catalog"


def store_form() -> str:
    """Returns the form in which to publish, `file` or `catalog`, from `EVAL_STORE`.

    Raises:
        UsageError: it names another one.
    """
    form = os.environ.get(VARIABLE, "").strip() or FILE
    if form not in (FILE, CATALOG):
        raise UsageError(f"{VARIABLE}={form}: expected {FILE} (one DuckDB file, the default) or {CATALOG}")
    return form


def catalog_folder(store: Path) -> Path:
    """Returns the folder beside the store with the parts and manifests of a catalog; a store of one file has none."""
    return store.with_name("catalog")
