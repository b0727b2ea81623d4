"""Keeps an evaluation when another one of its date begins, and puts it back when it is asked for again.

Files of the record are only ever replaced by others, never changed, so that a link keeps what they were. `generations`
tell which evaluation is in the place of the newest: they are kept last and put back first, so that a kill between any
two steps leaves each evaluation whole in one of its places, and `settle` finds out what is left to do.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.places.paths import report_folder
from eval_pipeline.store.durable import make_folders
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import GENERATION_PROMPTS, GENERATIONS, RUNS, VALIDATION
from eval_pipeline.workspace.evaluations import id_in_place, is_same
from eval_pipeline.workspace.homes.home_folders import remove_folder
from eval_pipeline.workspace.tabled.track_tables import partition_tables
from eval_pipeline.workspace.workspace import Workspace

_LAST = (GENERATION_PROMPTS, GENERATIONS)
_ASKED = {GENERATIONS.name, GENERATION_PROMPTS.name, VALIDATION.name}


def settle(workspace: Workspace, partition: Partition) -> None:
    """Completes what was killed, and removes from the newest's place what is still an earlier evaluation's."""
    record, own = workspace.record, id_in_place(workspace, partition)
    for key in sorted(kept_keys(workspace, partition), key=RecordKey.order):
        if key.evaluation == own:
            _end_move(workspace, key)
            continue
        for table in _tables():
            kept = record.status(table, key)
            if table.name not in _ASKED and kept is not None and kept == record.status(table, key.of_date):
                record.remove(table, key.of_date)


def kept_keys(workspace: Workspace, partition: Partition) -> set[RecordKey]:
    """Returns the keys of what is kept of earlier evaluations of a date, whole or not."""
    within = RecordKey.of(partition).of_date
    return {key for table in _LAST for key in workspace.record.partitions(table, within, earlier=True)}


def keep(workspace: Workspace, partition: Partition) -> None:
    """Keeps the newest evaluation of a date as an earlier one; it stays in its place until another one replaces it."""
    key = RecordKey.of(partition)
    to = replace(key, evaluation=id_in_place(workspace, partition))
    for table in _tables():
        if workspace.record.status(table, key) is not None:
            workspace.record.duplicate(table, key, to)
    shown, kept = _reports(workspace, to)
    if shown.is_dir():
        remove_folder(kept)
        shutil.copytree(shown, kept, copy_function=os.link)


def put_back(workspace: Workspace, partition: Partition, made: Mapping[str, str]) -> bool:
    """Puts the earlier evaluation in the newest's place that a run would resume to make `made`; whether there is one.

    The one in that place has to be kept before.
    """
    record = workspace.record
    for key in record.partitions(GENERATIONS, RecordKey.of(partition), earlier=True):
        header = record.header(GENERATIONS, key)
        if header is not None and is_same(header.made_from, made):
            record.duplicate(GENERATIONS, key, key.of_date)
            record.remove(GENERATIONS, key)
            settle(workspace, partition)
            return True
    return False


def drop(workspace: Workspace, key: RecordKey) -> None:
    """Removes an earlier evaluation."""
    for table in _tables():
        workspace.record.remove(table, key)
    remove_folder(_reports(workspace, key)[1])


def _end_move(workspace: Workspace, key: RecordKey) -> None:
    """Ends what was begun with the evaluation that is in the newest's place.

    With its `generations` it had been kept, before another one could begin; without, it was being put back. If they are
    still the same, a kill may have left what is written with them as the other one's.
    """
    record = workspace.record
    kept_generations = record.status(GENERATIONS, key)
    is_kept = kept_generations is not None
    is_same_still = kept_generations == record.status(GENERATIONS, key.of_date)
    for table in _tables():
        if record.status(table, key) is not None:
            if not is_kept or (is_same_still and table.name in _ASKED):
                record.duplicate(table, key, key.of_date)
            record.remove(table, key)
    shown, kept = _reports(workspace, key)
    if kept.is_dir():
        if not is_kept:
            remove_folder(shown)
            make_folders(shown.parent)
            kept.rename(shown)
        remove_folder(kept)


def _tables() -> Iterator[Table]:
    """Yields the tables with a file for each evaluation, those last by which one is found."""
    yield from (table for table in partition_tables() if table.name != RUNS.name and table not in _LAST)
    yield from _LAST


def _reports(workspace: Workspace, key: RecordKey) -> tuple[Path, Path]:
    """Returns the report's folder of the newest evaluation of a date, and of an earlier one."""
    reports = workspace.home.reports
    return report_folder(reports, key.of_date.partition()), report_folder(reports, key.partition())
