"""Retention: removes old dates from record, reports and store, and unused responses from the journal."""

import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from eval_pipeline.analysis.baseline import newest_partition
from eval_pipeline.chain.evaluation import chain_of, comparing
from eval_pipeline.chain.wholeness import gate
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.model import Partition, Response
from eval_pipeline.operations.upkeep.keeping import compare, deliver
from eval_pipeline.operations.upkeep.verifying import published_keys
from eval_pipeline.reports.places.paths import comparison_folder, nights_folder, report_folder
from eval_pipeline.stages.publishing import publish_gone
from eval_pipeline.state.leases import lock_name
from eval_pipeline.state.place import state_place
from eval_pipeline.store.durable import locked
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import GENERATIONS, RECOVERY_ATTEMPTS, RUNS
from eval_pipeline.workspace.earlier import drop, kept_keys
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.noting.commands import Command
from eval_pipeline.workspace.noting.noted import Entry, partition_of, told_of
from eval_pipeline.workspace.progress import SILENT, busy, counted
from eval_pipeline.workspace.runs import RUNNING, asking_parts, lock_file, run_rows, unused_partition
from eval_pipeline.workspace.tabled.track_tables import partition_tables
from eval_pipeline.workspace.workspace import Progress, Workspace

JOURNAL_MARGIN_S = 7 * 86_400.0
"""Newer responses are kept, because a killed run may have paid for them without recording them."""
_TOLD_BY = ("asked_on", "input_tokens", "output_tokens", "latency_ms")
"""Columns of attempts that identify their response in the journal; if two responses match, both are kept."""
_Told = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Pruned:
    """What pruning removed, or would remove.

    Attributes:
        partitions: removed evaluations of old dates, with their reports; earlier ones of a date before its newest.
        in_use: old evaluations that were kept because a run works on them.
        comparison_reports: folders of removed comparison reports.
        night_pages: removed pages of old nights of which no evaluation is left.
        responses: number of removed journal entries; None if the journal was left alone.
        left: why it was.
    """

    partitions: tuple[Partition, ...]
    in_use: tuple[Partition, ...]
    comparison_reports: tuple[Path, ...]
    night_pages: tuple[Path, ...]
    responses: int | None
    left: str = ""


@dataclass(frozen=True, slots=True)
class Remaining:
    """What stays on record, by which is judged what else belongs to a date that is gone.

    Attributes:
        suites: those that have files or an evaluation.
        evaluations: model versions and dates.
        since: the first of the newest dates: what failed later stays as well. None if nothing is on record.
    """

    suites: frozenset[str]
    evaluations: frozenset[tuple[str, date]]
    since: date | None

    def holds(self, model_version: str | None, day: date) -> bool:
        """Whether anything is left of the date: of a model version, or of any."""
        if self.since is None or day >= self.since:
            return True
        return any(day == left and model_version in {None, name} for name, left in self.evaluations)


def remaining(workspace: Workspace, keep: int, gone: Collection[Partition] | None = None) -> Remaining:
    """Returns what a pruning that keeps so many dates leaves on record.

    Args:
        workspace: the workspace.
        keep: number of dates to keep, at least 1.
        gone: what it removes, or has removed; if left out, what it would remove of what nobody is at work on.
    """
    dates = _dates(workspace)
    gone = {*(_old_partitions(workspace, dates, keep) if gone is None else gone)}
    left = {Partition(suite, name, day) for (suite, name), days in dates.items() for day in days} - gone
    newest = sorted({partition.eval_date for partition in left})[-keep:]
    return Remaining(
        frozenset(workspace.suites) | {partition.suite for partition in left},
        frozenset((partition.model_version, partition.eval_date) for partition in left),
        newest[0] if newest else None,
    )


def prune(
    workspace: Workspace,
    keep: int,
    *,
    dry_run: bool,
    only_home: bool = False,
    progress: Progress = SILENT,
    now: float | None = None,
) -> Pruned:
    """Keeps the newest dates of each suite and model version, and the newest full evaluation if it is older.

    It may be killed at any time: the next command completes it. A partition leaves the store after its files are gone.

    Args:
        workspace: the workspace.
        keep: number of dates to keep, at least 1.
        dry_run: only report what would be removed.
        only_home: no other home uses the database. Otherwise its responses are left, since another home may need them.
        progress: receives the progress.
        now: Unix time in seconds; for tests.

    Raises:
        StoreError: a file cannot be removed, or the journal cannot be written.
    """
    dates = _dates(workspace)
    old = list(_old_partitions(workspace, dates, keep))
    reports = [folder for suite in _suites(workspace) for folder in _old_comparison_reports(workspace, suite, keep)]
    removed, in_use, command = [], [], Command(workspace.home, "prune")
    for partition in counted(progress, "pruning", old, len(old)):
        with unused_partition(workspace, partition) as free:
            if not free or any(row["status"] == RUNNING for row in run_rows(workspace, partition, ["status"])):
                in_use.append(partition)
                continue
            if not dry_run:
                command.note({"due": "prune", "partition": told_of(partition)})
            kept = [key.partition() for key in kept_keys(workspace, partition)]
            removed += [*sorted(kept, key=lambda place: place.evaluation), partition]
            if not dry_run:
                _remove(workspace, partition)
    gone = set(removed)  # in a dry run, these still exist
    left = {day for (suite, name), days in dates.items() for day in days if Partition(suite, name, day) not in gone}
    pages = _old_night_pages(workspace, left, keep)
    if not dry_run:
        for folder in reports:
            _remove_folder(folder)
        for page in pages:
            page.unlink(missing_ok=True)
        _tell_others(workspace, removed, progress)
        command.settle()
    with busy(progress, "pruning the journal"):
        before = (time.time() if now is None else now) - JOURNAL_MARGIN_S
        reason = _why_left(workspace, only_home=only_home)
        responses = None if reason else _prune_journal(workspace, gone, before, dry_run=dry_run)
    return Pruned(tuple(removed), tuple(in_use), tuple(reports), tuple(pages), responses, reason)


def finish(workspace: Workspace, due: Sequence[Entry], progress: Progress, _: Callable[..., object]) -> None:
    """Completes a pruning that was killed; what a run works on stays. Raises StoreError."""
    removed = []
    for partition in (partition_of(entry["partition"]) for entry in due):
        with unused_partition(workspace, partition) as free:
            if free:
                _remove(workspace, partition)
                removed.append(partition)
    _tell_others(workspace, removed, progress)


def _dates(workspace: Workspace) -> Mapping[tuple[str, str], set[date]]:
    """Returns the recorded dates of each suite and model version, including those of half-removed evaluations."""
    dates: dict[tuple[str, str], set[date]] = {}
    for table in partition_tables():
        for key in workspace.record.partitions(table):
            assert key.suite and key.model_version and key.eval_date
            dates.setdefault((key.suite, key.model_version), set()).add(key.eval_date)
    return dates


def _old_partitions(workspace: Workspace, dates: Mapping[tuple[str, str], set[date]], keep: int) -> Iterator[Partition]:
    """Returns the evaluations older than the newest dates, oldest first in each series."""
    for (suite, version), days in sorted(dates.items()):
        if len(days) > keep:
            shown = newest_partition(workspace, suite, version)  # shown by `latest_*`; may be older than partial ones
            found = (Partition(suite, version, day) for day in sorted(days)[:-keep])
            yield from (partition for partition in found if partition != shown)


def _old_comparison_reports(workspace: Workspace, suite: str, keep: int) -> list[Path]:
    folder = comparison_folder(workspace.home.reports, suite, date.min).parent
    dated = []
    for path in folder.iterdir() if folder.is_dir() else ():
        with suppress(ValueError):  # not a dated folder
            dated.append((date.fromisoformat(path.name), path))
    return [path for _, path in sorted(dated)[:-keep]]


def _old_night_pages(workspace: Workspace, left: Collection[date], keep: int) -> list[Path]:
    """Returns the pages of nights that are older than the newest remaining dates and have no evaluation left.

    A night whose runs have all failed has a page but no evaluation; the page is kept as long as those of nights near
    it.
    """
    newest = sorted(left)[-keep:]
    folder = nights_folder(workspace.home.reports)
    pages = []
    for path in sorted(folder.glob("*.html")):
        with suppress(ValueError):  # something else that lies there
            day = date.fromisoformat(path.stem)
            if newest and day < newest[0] and day not in left:
                pages.append(path)
    return pages


def _suites(workspace: Workspace) -> Sequence[str]:
    return [suite for suite, source in workspace.suites.items() if source.header]


def _remove(workspace: Workspace, partition: Partition) -> None:
    """Removes an evaluation, after the earlier ones of its date."""
    for kept in kept_keys(workspace, partition):
        drop(workspace, kept)
    key = RecordKey.of(partition)
    for table in partition_tables():
        if key.fits(table):
            workspace.record.remove(table, key)
    _remove_folder(report_folder(workspace.home.reports, partition))
    parts = workspace.place.parts()
    for folder in parts.folders(key.folders(RUNS)):
        parts.drop(folder)
    # If somebody is just creating a new lock, it stays.
    shutil.rmtree(workspace.home.root.joinpath("locks", *key.folders(RUNS)), ignore_errors=True)


def _remove_folder(folder: Path) -> None:
    if folder.exists():
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise StoreError(f"cannot remove {folder}: {error.strerror or error}") from error


def _tell_others(workspace: Workspace, removed: Sequence[Partition], progress: Progress) -> None:
    """Removes the partitions from the store, and their dates from the trends."""
    if removed:
        days = {RecordKey.of(partition).of_date for partition in removed}
        gone = [key.partition() for key in published_keys(workspace) if key.of_date in days]
        publish_gone(workspace, list(dict.fromkeys((*removed, *gone))), gate(workspace))
    for suite in sorted({partition.suite for partition in removed} & set(_suites(workspace))):
        inputs = Inputs(workspace, suite, progress=progress)
        compare(inputs)
        deliver(comparing(chain_of(None)), inputs, with_report=False)


def somebody_asks(workspace: Workspace, ours: Collection[Partition] = ()) -> bool:
    """Whether a run holds the asking lock of any partition except those that we hold ourselves."""
    if leases := state_place().leases():
        held = {lock_name(asking_parts(partition)) for partition in ours}
        return any(name.endswith("/asking") and name not in held for name in leases.held("locks/"))
    own = {lock_file(workspace, partition, "asking") for partition in ours}
    for path in (workspace.home.root / "locks").rglob("asking.lock"):
        if path in own:
            continue
        try:
            with locked(path, 0):
                pass
        except StoreError:
            return True
    return False


def _why_left(workspace: Workspace, *, only_home: bool) -> str:
    """Returns why the journal must not be pruned; empty if it may be."""
    if (state := state_place()).is_shared and not only_home:
        return (
            f"other homes may use the responses in {state.address}, which this one cannot see; if there is no other, "
            "prune with --only-home"
        )
    return "a run is asking models; prune again when it has ended" if somebody_asks(workspace) else ""


def _prune_journal(workspace: Workspace, gone: set[Partition], before: float, *, dry_run: bool) -> int:
    used = set[_Told]()
    left_out = {RecordKey.of(partition) for partition in gone}
    for table in (GENERATIONS, RECOVERY_ATTEMPTS):
        newest, earlier = (workspace.record.partitions(table, earlier=kept) for kept in (False, True))
        for key in (*newest, *earlier):
            if key not in left_out:
                rows = workspace.record.read(table, key, _TOLD_BY).to_pylist()
                used |= {tuple(row[name] for name in _TOLD_BY) for row in rows}

    def unused(response: Response) -> bool:
        usage = response.usage
        return (response.asked_on or None, usage.input_tokens, usage.output_tokens, response.latency_ms) not in used

    return state_place().pruned_journal(workspace.home.journal, unused, before, dry_run=dry_run)
