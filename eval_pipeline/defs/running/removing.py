"""Removes a model version from Dagster's storage: its partition, runs and events, which contain figures."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import dagster as dg

from eval_pipeline.asking.journal.rows import SQLITE_FAILURES
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.home import Home
from eval_pipeline.defs.assets.partitions import DIMENSION
from eval_pipeline.defs.dagster_inside.running import PARTITION_NAME_TAG
from eval_pipeline.defs.running.instance import open_instance
from eval_pipeline.state.place import state_place
from eval_pipeline.workspace.noting.commands import ended

_DELETED_FROM = ("runs", "run_tags", "event_logs", "asset_event_tags", "dynamic_partitions")
"""Dagster's tables from which rows are deleted."""


def forget(home: Home, model_version: str, *, partition: bool, history: bool, dry_run: bool) -> int:
    """Removes a model version from Dagster's files or tables; returns the number of its runs. Can be repeated.

    Args:
        home: the home; nothing is done if nothing was ever run in it.
        model_version: name of the partition.
        partition: remove the partition.
        history: remove its runs and their events, including their bytes on disk.
        dry_run: only count.

    Raises:
        StoreError: one of the files is in use.
    """
    state = state_place()
    used = state.has_dagster(home)
    if history and not dry_run:
        if used:
            from eval_pipeline.defs.running.told.telling import tell

            while tell(home):  # of other model versions, too, whose history stays
                pass
        _forget_notes(home, model_version)
    if not used:
        return 0
    with open_instance(home) as instance:
        runs = instance.get_runs(dg.RunsFilter(tags={PARTITION_NAME_TAG: model_version})) if history else []
        if dry_run:
            return len(runs)
        for run in runs:
            instance.delete_run(run.run_id)
        if partition and instance.has_dynamic_partition(DIMENSION, model_version):
            instance.delete_dynamic_partition(DIMENSION, model_version)
    for path in _databases(home) if history else ():
        write_anew(path)
    if history:
        state.rewrite_dagster(_DELETED_FROM)
    return len(runs)


def _forget_notes(home: Home, model_version: str) -> None:
    """Removes the notes of commands that evaluated a model version, and of which Dagster has not been told."""
    for _, noted, remove in ended(home):
        if any(entry.get("model_version") == model_version for entry in noted.entries):
            remove()


def _databases(home: Home) -> Iterator[Path]:
    yield from sorted(home.dagster.rglob("*.db"))


def write_anew(path: Path, patience_s: float = 10.0) -> None:
    """Makes SQLite rewrite a file without deleted data. Raises StoreError if others use it for longer than that."""
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=patience_s)) as connection:
            connection.execute("VACUUM")
            if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:  # a reader holds what was
                raise sqlite3.OperationalError("somebody reads it")
    except SQLITE_FAILURES as error:
        raise StoreError(
            f"cannot remove deleted runs from {path} ({error}); end what uses it (`eval-pipeline dev`), then give the "
            "same command again"
        ) from error
