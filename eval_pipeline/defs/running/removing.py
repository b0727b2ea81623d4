"""What Dagster keeps of a model version: a partition, runs, and events that show figures of what the runs made."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import dagster as dg
from dagster._core.storage.tags import PARTITION_NAME_TAG

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.home import Home
from eval_pipeline.defs.assets.partitions import DIMENSION
from eval_pipeline.defs.running.instance import open_instance


def forget(home: Home, model_version: str, *, partition: bool, history: bool, dry_run: bool) -> int:
    """Takes a model version out of Dagster's files; how many runs of its history go. A second call does the rest.

    Args:
        home: where nothing was ever run, nothing is done.
        model_version: name of the partition.
        partition: it is no partition any more.
        history: its runs and their events go too, and their bytes.
        dry_run: only count.

    Raises:
        StoreError: one of the files is in use.
    """
    if not any(home.dagster.rglob("*.db")):
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
        _write_anew(path)
    return len(runs)


def _databases(home: Home) -> Iterator[Path]:
    yield from sorted(home.dagster.rglob("*.db"))


def _write_anew(path: Path) -> None:
    """Has SQLite write a file without what was deleted."""
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=10.0)) as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise StoreError(
            f"cannot take deleted runs out of {path} ({error}); end what uses it (`eval-pipeline dev`), then give the "
            "same command again"
        ) from error
