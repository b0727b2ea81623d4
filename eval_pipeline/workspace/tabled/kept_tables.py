"""The tables of our own tracks, kept between processes: who only needs their columns need not import the tracks.

They are kept beside the bytecode of this package, with the state of every module of ours that was loaded when they were
derived. They count only while all of these files are as they were, and only for tracks that this process has not
imported anyway. Where that folder cannot be written, and where packages add tracks or metrics, nothing is kept.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from eval_pipeline import LOADED_NS
from eval_pipeline.core.hashing.sealed import read_sealed, write_sealed
from eval_pipeline.core.installed.plugins import installed
from eval_pipeline.fingerprints.sources import OWN
from eval_pipeline.store.schemas import Column, Table

_PACKAGE = Path(__file__).parents[2]
_PLACE = _PACKAGE / "__pycache__" / "tables"
_SETTLED_NS = 100_000_000
"""A file changed so shortly before it was loaded could have been changed again, at the same time to the clock."""


def kept_tables() -> dict[str, list[Table]]:
    """Returns the tables by track; empty if none are kept, or code has changed since."""
    if _extended():
        return {}
    try:
        found = json.loads(read_sealed(_PLACE) or "{}")
        if not found or _states(found["states"]) != found["states"]:
            return {}
        return {track: [_table(said) for said in tables] for track, tables in found["tables"].items()}
    except (ValueError, KeyError, TypeError, OSError):
        return {}


def keep_tables(tables: Mapping[str, Sequence[Table]]) -> None:
    """Keeps the tables by track, derived from what is loaded, unless a file has changed since this process began."""
    if _extended():
        return
    files = [module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] in OWN]
    with suppress(OSError, ValueError):  # it only takes time the next time
        states = _states([os.path.relpath(file, _PACKAGE) for file in files if file])
        if max(max(state) for state in states.values()) < LOADED_NS - _SETTLED_NS:
            plain = {track: [asdict(table) for table in found] for track, found in tables.items()}
            write_sealed(_PLACE, json.dumps({"states": states, "tables": plain}))


def _extended() -> bool:
    return any(plugin.group in {"tracks", "metrics"} and not plugin.is_ours for plugin in installed())


def _states(files: Mapping[str, object] | Sequence[str]) -> dict[str, list[int]]:
    """Returns the times at which files, relative to the package, were last changed."""
    found = ((name, os.stat(os.path.join(_PACKAGE, name))) for name in files)
    return {name: [status.st_mtime_ns, status.st_ctime_ns] for name, status in found}


def _table(said: dict[str, Any]) -> Table:
    said["columns"] = tuple(Column(**column) for column in said["columns"])
    return Table(**said | {"sources": tuple(said["sources"])})
