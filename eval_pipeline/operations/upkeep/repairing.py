"""The command `doctor --repair`: makes damaged files again from their sources; the damaged ones are kept aside."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from eval_pipeline.asking.batches.sqlite import batch_rows, insert_batch, make_table
from eval_pipeline.asking.batches.table import is_whole_batch
from eval_pipeline.asking.journal.rows import SQLITE_FAILURES, insert
from eval_pipeline.asking.journal.salvage import whole_rows
from eval_pipeline.asking.journal.sqlite import SqliteJournal
from eval_pipeline.chain.evaluation import chain_of, ingesting
from eval_pipeline.chain.runner import run_chain
from eval_pipeline.chain.wholeness import gate
from eval_pipeline.core.errors import DamagedFileError, EvalError
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.runs.publication import Publication
from eval_pipeline.operations.runs.rescoring import make_again, note_run
from eval_pipeline.operations.upkeep.completing import running
from eval_pipeline.operations.upkeep.doctor import Finding, store_problem
from eval_pipeline.operations.upkeep.keeping import compare, publish_comparisons
from eval_pipeline.operations.upkeep.verifying import unreadable_files
from eval_pipeline.stages.attempts.model_calls import provider_for
from eval_pipeline.stages.attempts.sink import register_model_version
from eval_pipeline.stages.publishing import publish_all
from eval_pipeline.state.place import state_place
from eval_pipeline.store.durable import fsync_path, make_folders
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import (
    ACKNOWLEDGEMENTS,
    MODEL_VERSIONS,
    RUNS,
    SAMPLING_DESIGN,
    SUPERSEDED_STATISTICS,
    all_tables,
)
from eval_pipeline.workspace.asked.scope import FULL, Scope
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.noting.commands import Command, finish_first
from eval_pipeline.workspace.noting.noted import Entry
from eval_pipeline.workspace.progress import SILENT, busy
from eval_pipeline.workspace.runs import RunContext, run_rows
from eval_pipeline.workspace.tabled.track_tables import further_tables
from eval_pipeline.workspace.workspace import Progress, Workspace

_LOST = {
    RUNS.name: "it tells of runs, which nothing else does",
    SAMPLING_DESIGN.name: "it held the draw of `run --until`; a run in full needs none",
    SUPERSEDED_STATISTICS.name: "it held former figures, whose code is gone",
    ACKNOWLEDGEMENTS.name: "it held what people said; acknowledge the losses again",
}
"""Tables that are derived from nothing on record → why they cannot be made again."""


def repair(workspace: Workspace, progress: Progress = SILENT) -> Iterator[Finding]:
    """Repairs journal, record and store, in this order; yields a finding for each damaged item.

    No model is asked. Call it only while nothing runs.
    """
    finish_first(workspace.home, "repair", lambda due: finish(workspace, due, progress, repair))
    aside = workspace.home.root / "damaged" / datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    with busy(progress, "mending the journal"):
        yield from _journal(workspace, aside)
    with busy(progress, "mending the record"):
        yield from _record(workspace, aside)
    with busy(progress, "mending the store"):
        if problem := store_problem(workspace):
            publish_all(workspace, gate(workspace), full=True)
            yield Finding("store", True, f"{problem}; it is built anew from the record")


def _journal(workspace: Workspace, aside: Path) -> Iterator[Finding]:
    path = workspace.home.journal
    found = state_place().checked_journal(path)
    if found is None or not (problem := found.problem):
        return
    if (mended := state_place().mended_journal()) is not None:
        kept, lost = mended
        yield from _mended_as(f"{problem}; {kept}", lost)
        return
    rows, (batches, lost) = list(whole_rows(path)), _batches(path)
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    SqliteJournal(new).close()
    with closing(sqlite3.connect(new, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for row in rows:
            insert(connection, [(row.key, row.body)], row.written_at)
        make_table(connection)
        for batch in batches:
            insert_batch(connection, batch)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    command = Command(workspace.home, "doctor --repair")
    command.note({"due": "repair", "aside": str(aside)})
    _exchange(path, new, aside)
    command.settle()
    text = f"{problem}; {len(rows):,} whole responses are kept, the damaged file is {aside / path.name}"
    yield from _mended_as(text, lost)


def finish(workspace: Workspace, due: Sequence[Entry], _: Progress, __: Callable[..., object]) -> None:
    """Puts the mended journal in place of the damaged one, or makes files of the record again, after a kill."""
    if "files" in due[0]:
        tables = {source.name: source for table in all_tables(further_tables()) for source in table.record_tables()}
        files = [
            (tables[name], RecordKey(suite, version, date.fromisoformat(day) if day else None, *evaluation))
            for name, suite, version, day, *evaluation in due[0]["files"]
            if name in tables
        ]
        list(_made_again(workspace, Path(due[0]["aside"]), files))  # what cannot be made, `doctor` tells
        return
    path = workspace.home.journal
    new = path.with_name(f"{path.name}.new")
    if new.exists():
        _exchange(path, new, Path(due[0]["aside"]))


def _exchange(path: Path, new: Path, aside: Path) -> None:
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        _set_aside(path.with_name(name), aside / name)
    new.replace(path)
    fsync_path(path.parent)


def _mended_as(text: str, lost_batches: str) -> Iterator[Finding]:
    yield Finding("journal", True, text)
    if lost_batches:
        advice = "see at the provider which batches are open; what they hold may be asked and paid for again"
        yield Finding("batches", False, lost_batches, advice)


def _batches(path: Path) -> tuple[list[Sequence[Any]], str]:
    """Returns the undamaged batches, and a sentence about damaged ones."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            rows = batch_rows(connection)
    except SQLITE_FAILURES as error:
        return [], f"which batches were handed in cannot be read any more ({error})"
    whole = [row[:-1] for row in rows if is_whole_batch(row)]
    lost = len(rows) - len(whole)
    return whole, f"{lost} of {len(rows)} batches are not as they were written" if lost else ""


def _record(workspace: Workspace, aside: Path) -> Iterator[Finding]:
    found = [one for one in unreadable_files(workspace) if isinstance(one[2], DamagedFileError)]
    if not found:
        return
    command = Command(workspace.home, "doctor --repair")
    listed = [[source.name, key.suite, key.model_version, key.eval_date, key.evaluation] for source, key, _ in found]
    command.note({"due": "repair", "aside": str(aside), "files": listed})
    for source, key, _ in found:
        if source.name in _LOST:
            place = workspace.record.place(source, key)
            yield Finding("record", False, f"{place} cannot be made again: {_LOST[source.name]}", "nothing: it is gone")
    yield from _made_again(workspace, aside, [(source, key) for source, key, _ in found])
    command.settle()


def _made_again(workspace: Workspace, aside: Path, files: Sequence[tuple[Table, RecordKey]]) -> Iterator[Finding]:
    """Sets damaged files of the record aside, and makes them again from their sources."""
    for source, key in files:
        if _is_damaged(workspace, source, key):
            workspace.record.set_aside(source, key, aside / "record")
    waiting = [(source, key) for source, key in files if source.name not in _LOST]
    for source, key in waiting:
        if source.name == MODEL_VERSIONS.name and key.model_version in workspace.model_versions:
            version = workspace.model_version(key.model_version)
            register_model_version(workspace, version, provider_for(workspace, version, asks=False))
    for suite in sorted({key.suite for _, key in waiting if key.suite}):
        yield from _suite(workspace, suite, waiting)
    for source, key in waiting:
        yield _told(workspace, source, key)


def _is_damaged(workspace: Workspace, source: Table, key: RecordKey) -> bool:
    """Whether a file is there and damaged; one that an interrupted repair has made again is not."""
    try:
        if workspace.record.status(source, key) is not None:
            workspace.record.examine(source, key)
    except DamagedFileError:
        return True
    return False


def _suite(workspace: Workspace, suite: str, waiting: list[tuple[Table, RecordKey]]) -> Iterator[Finding]:
    """Makes the missing tables of a suite again; yields a finding for each that could not be made."""
    inputs = Inputs(workspace, suite)
    publication = Publication(workspace, Command(workspace.home, "doctor --repair"))
    try:
        with running(publication):
            run_chain(ingesting(chain_of(inputs.track)), inputs)
            for key in dict.fromkeys(key for _, key in waiting if key.suite == suite and key.model_version):
                _evaluation(publication, workspace, key.partition())
            compare(inputs)
            publish_comparisons(inputs)
            publication.compared(suite)
    except EvalError as error:
        yield Finding("record", False, f"{suite}: {error}", "`eval-pipeline run` makes what is missing")


def _evaluation(publication: Publication, workspace: Workspace, partition: Partition) -> None:
    rows = [row for row in run_rows(workspace, partition, ["scope", "epoch", "started_at"]) if row["scope"]]
    last = max(rows, key=lambda row: row["started_at"], default={"scope": FULL, "epoch": ""})
    run = RunContext(str(uuid4()), last["epoch"] or "", asks=False, asks_judge=False)
    inputs = Inputs.of(workspace, partition, run=run, scope=Scope.from_label(last["scope"]))
    note_run(inputs, publication)
    make_again(inputs, publication)


def _told(workspace: Workspace, source: Table, key: RecordKey) -> Finding:
    place = workspace.record.place(source, key)
    if workspace.record.status(source, key) is not None:
        return Finding("record", True, f"{place} is made again")
    return Finding("record", False, f"{place} is not made again", "`eval-pipeline run` makes it")


def _set_aside(path: Path, target: Path) -> None:
    if path.exists():
        make_folders(target.parent)
        path.replace(target)
        fsync_path(target.parent)
