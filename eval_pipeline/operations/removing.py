"""`remove`: a model version leaves the home, and with a purge everything that it ever said leaves it too.

Each step finds for itself what is left to do, and a note in the home says that a removal is under way, so that a second
call goes on where a first one was killed. What is made of others is removed first: no half is ever taken for a whole.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from eval_pipeline.analysis.comparisons.acknowledging import forget_acknowledged
from eval_pipeline.chain.evaluation import chain_of, comparing
from eval_pipeline.chain.wholeness import gate
from eval_pipeline.core.days import today
from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.keeping import compare, deliver
from eval_pipeline.operations.pruning import partition_tables, somebody_asks
from eval_pipeline.operations.purging import Purged, Removal, purge
from eval_pipeline.operations.removal_notes import Note, end_note, noted, write_note
from eval_pipeline.providers.model_versions import forget_imported
from eval_pipeline.reports.paths import comparison_folder, safe_name
from eval_pipeline.stages.publishing import publish_keys
from eval_pipeline.store.durable import fsync_path
from eval_pipeline.store.query import connect_read_only
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import MODEL_COMPARISONS, MODEL_VERSIONS, RUNS, TRENDS
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.progress import SILENT, busy, counted
from eval_pipeline.workspace.runs import RUNNING, run_rows, unused_partition
from eval_pipeline.workspace.workspace import Progress, Workspace


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed, or would be.

    Attributes:
        partitions: evaluations, sorted.
        files, size: how many files of record and reports, and their bytes.
        entry: the imported entry of `model_versions.yaml` is removed.
        listed_in: the file of the user that still lists it, so that the next run evaluates it again; None: none does.
        purged: None without a purge.
    """

    partitions: tuple[Partition, ...]
    files: int
    size: int
    entry: bool
    listed_in: Path | None
    purged: Purged | None


@dataclass(slots=True)
class _Found:
    """Where the home has something of the model version."""

    partitions: set[Partition] = field(default_factory=set)
    folders: list[Path] = field(default_factory=list)

    def first_dates(self) -> dict[str, str]:
        """The first date of each suite."""
        first: dict[str, date] = {}
        for partition in self.partitions:
            first[partition.suite] = min(partition.eval_date, first.get(partition.suite, partition.eval_date))
        return {suite: day.isoformat() for suite, day in first.items()}


def remove(
    workspace: Workspace,
    removal: Removal,
    *,
    dry_run: bool,
    progress: Progress = SILENT,
    last: Callable[[], object] = lambda: None,
) -> Removed:
    """Removes a model version: its evaluations, reports and rows in the store, and what is compared with it.

    May be killed at any time and called again. Nothing is begun while a run is at one of its evaluations, or, with a
    purge, while any run asks models.

    Args:
        workspace: the home.
        removal: what is removed.
        dry_run: only say what would be.
        progress: told of the evaluations.
        last: does what is left to do elsewhere; where it fails, the same call does it again.

    Raises:
        UsageError: the home has nothing of that name, or a run is at it.
        StoreError: a file cannot be removed or written.
    """
    found = _find(workspace, removal)
    before = noted(workspace.home, removal.model_version)
    _check_known(workspace, removal, found, known=before is not None)
    with _alone(workspace, removal, found):
        files = [path for folder in found.folders for path in folder.rglob("*") if path.is_file()]
        told = (len(files), sum(path.stat().st_size for path in files))
        entry, listed = _entries(workspace, removal, dry_run=True)
        if dry_run:
            purged = purge(workspace, removal, found.partitions, dry_run=True) if removal.purge else None
            return Removed(_sorted(found.partitions), *told, entry, listed, purged)
        note = write_note(workspace.home, Note(removal.model_version, found.first_dates()), before)
        _take_out(workspace, removal, found, progress)
        _entries(workspace, removal, dry_run=False)
        _compare_again(workspace, removal, note, progress)
        purged = None
        if removal.purge:
            with busy(progress, "purging responses"):
                purged = purge(workspace, removal, found.partitions, dry_run=False)
    last()
    end_note(note)
    return Removed(_sorted(found.partitions), *told, entry, listed, purged)


def _sorted(partitions: Iterable[Partition]) -> tuple[Partition, ...]:
    return tuple(sorted(partitions, key=lambda found: (found.suite, found.eval_date)))


def _find(workspace: Workspace, removal: Removal) -> _Found:
    found = _Found()
    keys = [key for table in partition_tables() for key in workspace.record.partitions(table)]
    for key in {*keys, *_in_store(workspace)}:
        if key.model_version == removal.model_version and removal.covers(key.suite):
            assert key.suite and key.eval_date
            found.partitions.add(Partition(key.suite, key.model_version, key.eval_date))
    found.folders = list(_folders(workspace, removal))
    return found


def _in_store(workspace: Workspace) -> Iterator[RecordKey]:
    """What the store has: a removal that was killed may have left it there alone."""
    if not workspace.home.store.exists():
        return
    with connect_read_only(workspace.home.store) as store:
        query = "SELECT DISTINCT suite, model_version, eval_date FROM meta.files WHERE eval_date IS NOT NULL"
        for row in store.execute(query).fetchall():
            yield RecordKey(*row)


def _folders(workspace: Workspace, removal: Removal) -> Iterator[Path]:
    """Folders that hold nothing but what belongs to the model version, or to it and a suite, in record and reports.

    Of tables that only a package knew which is gone too, and with files that killed writers left.
    """
    home, name = workspace.home, safe_name(removal.model_version)
    (own,) = RecordKey.of_model_version(removal.model_version).folders(MODEL_VERSIONS)
    suites = None if removal.suites is None else {_suite_folder(suite) for suite in removal.suites}
    for folder in home.record.glob("*/suite=*/model_version=*"):
        if folder.name == own and (suites is None or folder.parent.name in suites):
            yield folder
    names = None if removal.suites is None else {safe_name(suite) for suite in removal.suites}
    for folder in home.reports.glob("*/*"):
        in_suite = names is None or folder.parent.name in names
        if folder.name == name and folder.parent.name != "compare" and in_suite:
            yield folder


def _suite_folder(suite: str) -> str:
    (name,) = RecordKey.of_suite(suite).folders(TRENDS)
    return name


def _check_known(workspace: Workspace, removal: Removal, found: _Found, *, known: bool) -> None:
    name = removal.model_version
    registered = workspace.record.header(MODEL_VERSIONS, RecordKey.of_model_version(name)) is not None
    if known or found.partitions or found.folders or registered or name in workspace.model_versions:
        return
    names = {key.model_version or "" for key in workspace.record.partitions(MODEL_VERSIONS)} | {
        *workspace.model_versions
    }
    raise UsageError(f"nothing is kept of a model version '{name}'; known: {', '.join(sorted(names)) or 'none'}")


@contextmanager
def _alone(workspace: Workspace, removal: Removal, found: _Found) -> Iterator[None]:
    """Holds the locks of every evaluation, those of today too, which a run may be about to begin."""
    suites = removal.suites if removal.suites is not None else {*workspace.suites}
    begun = {Partition(suite, removal.model_version, today()) for suite in suites}
    with ExitStack() as stack:
        for partition in _sorted(found.partitions | begun):
            free = stack.enter_context(unused_partition(workspace, partition))
            if not free or any(row["status"] == RUNNING for row in run_rows(workspace, partition, ["status"])):
                raise UsageError(
                    f"a run is at {partition.suite} · {partition.model_version} · {partition.eval_date}; end it or "
                    "wait for it, then remove: nothing has been removed"
                )
        if removal.purge and somebody_asks(workspace, {*found.partitions, *begun}):
            raise UsageError(
                "a run is asking models, and the journal cannot be purged beside it; purge when it has ended: nothing "
                "has been removed"
            )
        yield


def _take_out(workspace: Workspace, removal: Removal, found: _Found, progress: Progress) -> None:
    """Removes the files of record and reports, what is made last first; then the model version's own."""
    ordered = _sorted(found.partitions)
    for partition in counted(progress, "removing", ordered, len(ordered)):
        key = RecordKey.of(partition)
        for table in partition_tables():
            workspace.record.remove(table, key)
    for folder in _folders(workspace, removal):
        remove_folder(folder)
    for partition in ordered:
        place = workspace.home.root.joinpath("locks", *RecordKey.of(partition).folders(RUNS))
        shutil.rmtree(place, ignore_errors=True)
    if not any(key.model_version == removal.model_version for key in workspace.record.partitions(RUNS)):
        workspace.record.remove(MODEL_VERSIONS, RecordKey.of_model_version(removal.model_version))


def remove_folder(folder: Path) -> None:
    """Removes a folder where there is one. Raises StoreError."""
    try:
        shutil.rmtree(folder)
        fsync_path(folder.parent)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"cannot remove {folder}: {error.strerror or error}") from error


def _entries(workspace: Workspace, removal: Removal, *, dry_run: bool) -> tuple[bool, Path | None]:
    """Whether the imported entry goes, and the user's own file where that lists the model version."""
    name, home = removal.model_version, workspace.home
    imported = forget_imported(home.imported_model_versions, name, removal.suites, dry_run=dry_run)
    listed = name in workspace.model_versions and not imported
    return imported, home.data / "model_versions.yaml" if listed and removal.suites is None else None


def _compare_again(workspace: Workspace, removal: Removal, note: Note, progress: Progress) -> None:
    """Has comparisons, trends and their reports be without the model version, and the store."""
    suites = sorted(note.suites)
    for suite in suites:
        forget_acknowledged(Inputs(workspace, suite), removal.model_version)
        for folder in _comparison_reports(workspace, suite, note.suites[suite]):
            remove_folder(folder)
    readable = [suite for suite in suites if suite in workspace.suites and workspace.suites[suite].header]
    for suite in suites:
        if suite in readable:
            compare(Inputs(workspace, suite, progress=progress))
        else:  # nobody can compare anew what is left; it is made again when the suite is there again
            for table in (MODEL_COMPARISONS, TRENDS):
                workspace.record.remove(table, RecordKey.of_suite(suite))
    if workspace.home.store.exists():
        gone = [key for key in _in_store(workspace) if key.model_version == removal.model_version]
        keys = [key for key in gone if removal.covers(key.suite)]
        keys += [RecordKey.of_suite(suite) for suite in suites]
        keys.append(RecordKey.of_model_version(removal.model_version))
        with busy(progress, "publishing"):
            publish_keys(workspace, keys, gate(workspace), erase=removal.purge)
    for suite in readable:
        deliver(comparing(chain_of(None)), Inputs(workspace, suite, progress=progress), with_report=True)


def _comparison_reports(workspace: Workspace, suite: str, first: str) -> list[Path]:
    """Those that may tell of the model version: of its first date and later ones."""
    folder = comparison_folder(workspace.home.reports, suite, date.min).parent
    found = folder.iterdir() if folder.is_dir() else iter(())
    return [path for path in found if path.is_dir() and path.name.removeprefix(".old-").removeprefix(".new-") >= first]
