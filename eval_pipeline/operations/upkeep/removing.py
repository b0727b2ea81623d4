"""The command `remove`: removes a model version from the home, and with `--purge` also everything it ever answered.

Each step finds out by itself what is left to do, and the note of the command says what it removes, so that the next
command continues where a killed one stopped. Derived files are removed first, so that a remainder never looks complete.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path

from eval_pipeline.analysis.comparisons.acknowledging import forget_acknowledged
from eval_pipeline.chain.evaluation import chain_of, comparing
from eval_pipeline.chain.wholeness import gate
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.core.system.days import today
from eval_pipeline.operations.upkeep.keeping import compare, deliver
from eval_pipeline.operations.upkeep.pruning import somebody_asks
from eval_pipeline.operations.upkeep.purging import Purged, Removal, purge
from eval_pipeline.operations.upkeep.removing_nights import tell_nights_again
from eval_pipeline.operations.upkeep.verifying import published_keys
from eval_pipeline.providers.imported_versions import forget_imported
from eval_pipeline.reports.places.paths import comparison_folder, safe_name
from eval_pipeline.stages.publishing import publish_keys
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import METRIC_COMPARISONS, MODEL_COMPARISONS, MODEL_VERSIONS, RUNS, TRENDS
from eval_pipeline.workspace.homes.home_folders import remove_folder
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.noting.commands import Command, left_behind
from eval_pipeline.workspace.noting.noted import Entry
from eval_pipeline.workspace.progress import SILENT, busy, counted
from eval_pipeline.workspace.runs import RUNNING, run_rows, unused_partition
from eval_pipeline.workspace.tabled.track_tables import partition_tables
from eval_pipeline.workspace.workspace import Progress, Workspace


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed, or would be.

    Attributes:
        partitions: evaluations, sorted.
        files, size: number and total bytes of files in record and reports.
        entry: whether the imported entry of `model_versions.yaml` is removed.
        listed_in: the user's own file that still lists it, so that the next run would evaluate it again; or None.
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
    """Where the home contains something of the model version."""

    partitions: set[Partition] = field(default_factory=set)
    folders: list[Path] = field(default_factory=list)

    def first_dates(self) -> dict[str, str]:
        """Returns the first date for each suite, as ISO texts."""
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
    forget: Callable[..., object] = lambda *_, **__: None,
) -> Removed:
    """Removes a model version: its evaluations, reports, rows in the store, and comparisons with it.

    It may be killed at any time: the next command completes it. Nothing is begun while a run works on one of its
    evaluations or, with a purge, while any run asks models.

    Args:
        workspace: the workspace.
        removal: what is removed.
        dry_run: only report what would be removed.
        progress: receives the progress.
        forget: removes it from Dagster's storage; if it fails, the next command repeats it.

    Raises:
        UsageError: the home has nothing of that name, or a run works on it.
        StoreError: a file cannot be removed or written.
    """
    found = _find(workspace, removal)
    _check_known(workspace, removal, found)
    command = Command(workspace.home, "remove")
    with _alone(workspace, removal, found):
        files = [size for folder in found.folders for size in workspace.place.folders().sizes(folder)]
        told = (len(files), sum(files))
        entry, listed = _entries(workspace, removal, dry_run=True)
        if dry_run:
            purged = purge(workspace, removal, found.partitions, dry_run=True) if removal.purge else None
            return Removed(_sorted(found.partitions), *told, entry, listed, purged)
        suites, first = removal.suites and sorted(removal.suites), found.first_dates()
        of = {"model_version": removal.model_version, "only": suites, "purge": removal.purge}
        command.note({"due": "remove", **of, "first": first})
        purged = _removed(workspace, removal, found, first, progress)
    _forget(workspace, removal, forget)
    command.settle()
    return Removed(_sorted(found.partitions), *told, entry, listed, purged)


def finish(workspace: Workspace, due: Sequence[Entry], progress: Progress, forget: Callable[..., object]) -> None:
    """Completes removals that were killed. Raises as `remove`."""
    for entry in due:
        suites = entry["only"]
        removal = Removal(entry["model_version"], None if suites is None else frozenset(suites), entry["purge"])
        found = _find(workspace, removal)
        with _alone(workspace, removal, found):
            _removed(workspace, removal, found, entry["first"], progress)
        _forget(workspace, removal, forget)


def is_interrupted(workspace: Workspace, model_version: str) -> bool:
    """Whether a removal of the model version was killed and is not completed yet."""
    with left_behind(workspace.home) as (left, _):
        return any(entry.get("model_version") == model_version for one in left for entry in one.noted.due)


def _removed(
    workspace: Workspace, removal: Removal, found: _Found, first: Mapping[str, str], progress: Progress
) -> Purged | None:
    """Removes what was found; `first` is the first date removed, for each suite."""
    _take_out(workspace, removal, found, progress)
    _entries(workspace, removal, dry_run=False)
    _compare_again(workspace, removal, first, progress)
    if not removal.purge:
        return None
    with busy(progress, "purging responses"):
        return purge(workspace, removal, found.partitions, dry_run=False)


def _forget(workspace: Workspace, removal: Removal, forget: Callable[..., object]) -> None:
    whole = removal.suites is None
    forget(workspace.home, removal.model_version, partition=whole, history=removal.purge, dry_run=False)


def _sorted(partitions: Iterable[Partition]) -> tuple[Partition, ...]:
    return tuple(sorted(partitions, key=lambda found: (found.suite, found.eval_date)))


def _find(workspace: Workspace, removal: Removal) -> _Found:
    found = _Found()
    keys = [key for table in partition_tables() for key in workspace.record.partitions(table)]
    for key in {*keys, *published_keys(workspace)}:  # a killed removal may have left rows only in the store
        if key.model_version == removal.model_version and removal.covers(key.suite):
            assert key.suite and key.eval_date
            found.partitions.add(Partition(key.suite, key.model_version, key.eval_date))
    found.folders = list(_folders(workspace, removal))
    return found


def _folders(workspace: Workspace, removal: Removal) -> Iterator[Path]:
    """Yields the folders in record, parts and reports that belong to the model version (or to it and a suite) alone.

    This includes tables of packages that are no longer installed, and files left by killed writers.
    """
    home, name = workspace.home, safe_name(removal.model_version)
    (own,) = RecordKey.of_model_version(removal.model_version).folders(MODEL_VERSIONS)
    suites = None if removal.suites is None else {_suite_folder(suite) for suite in removal.suites}
    folders, inside = workspace.place.folders(), ("suite=*", "model_version=*")
    for folder in (found for root in (home.record, home.parts) for found in folders.below(root, inside)):
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


def _check_known(workspace: Workspace, removal: Removal, found: _Found) -> None:
    name = removal.model_version
    registered = workspace.record.header(MODEL_VERSIONS, RecordKey.of_model_version(name)) is not None
    if found.partitions or found.folders or registered or name in workspace.model_versions:
        return
    names = {key.model_version or "" for key in workspace.record.partitions(MODEL_VERSIONS)} | {
        *workspace.model_versions
    }
    raise UsageError(f"the home has nothing of a model version '{name}'; known: {', '.join(sorted(names)) or 'none'}")


@contextmanager
def _alone(workspace: Workspace, removal: Removal, found: _Found) -> Iterator[None]:
    """Holds the locks of all its evaluations, including today's, which a run may be about to begin."""
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
    """Removes the files in record and reports in reverse order of creation, then those of the model version itself."""
    ordered = _sorted(found.partitions)
    for partition in counted(progress, "removing", ordered, len(ordered)):
        key = RecordKey.of(partition)
        for table in partition_tables():
            workspace.record.remove(table, key)
    folders = workspace.place.folders()
    for folder in _folders(workspace, removal):
        folders.remove(folder)
    for partition in ordered:
        place = workspace.home.root.joinpath("locks", *RecordKey.of(partition).folders(RUNS))
        shutil.rmtree(place, ignore_errors=True)
    if not workspace.record.partitions(RUNS, RecordKey.of_model_version(removal.model_version)):
        workspace.record.remove(MODEL_VERSIONS, RecordKey.of_model_version(removal.model_version))


def _entries(workspace: Workspace, removal: Removal, *, dry_run: bool) -> tuple[bool, Path | None]:
    """Returns whether the imported entry is removed, and the user's own file if that lists the model version."""
    name, home = removal.model_version, workspace.home
    forget = partial(forget_imported, home.imported_model_versions, name, removal.suites, dry_run=dry_run)
    imported = workspace.imported.change_model_versions(forget)
    listed = name in workspace.model_versions and not imported
    return imported, home.data / "model_versions.yaml" if listed and removal.suites is None else None


def _compare_again(workspace: Workspace, removal: Removal, first: Mapping[str, str], progress: Progress) -> None:
    """Makes comparisons, trends, their reports and the store again without the model version."""
    suites = sorted(first)
    for suite in suites:
        forget_acknowledged(Inputs(workspace, suite), removal.model_version)
        for folder in _comparison_reports(workspace, suite, first[suite]):
            remove_folder(folder)
    readable = [suite for suite in suites if suite in workspace.suites and workspace.suites[suite].header]
    for suite in suites:
        if suite in readable:
            compare(Inputs(workspace, suite, progress=progress))
        else:  # nobody can compare the rest now; it is made again when the suite is back
            for table in (MODEL_COMPARISONS, METRIC_COMPARISONS, TRENDS):
                workspace.record.remove(table, RecordKey.of_suite(suite))
    if workspace.home.store.exists():
        gone = [key for key in published_keys(workspace) if key.model_version == removal.model_version]
        keys = [key for key in gone if removal.covers(key.suite)]
        keys += [RecordKey.of_suite(suite) for suite in suites]
        keys.append(RecordKey.of_model_version(removal.model_version))
        with busy(progress, "publishing"):
            publish_keys(workspace, keys, gate(workspace), erase=removal.purge)
    for suite in readable:
        deliver(comparing(chain_of(None)), Inputs(workspace, suite, progress=progress), with_report=True)
    if first:
        tell_nights_again(workspace, removal.model_version, min(first.values()))


def _comparison_reports(workspace: Workspace, suite: str, first: str) -> list[Path]:
    """Returns the reports that may mention the model version: those of its first date and later."""
    folder = comparison_folder(workspace.home.reports, suite, date.min).parent
    found = folder.iterdir() if folder.is_dir() else iter(())
    return [path for path in found if path.is_dir() and path.name.removeprefix(".old-").removeprefix(".new-") >= first]
