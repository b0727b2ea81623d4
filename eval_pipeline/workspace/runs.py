"""The table `runs` (when which scope was run, and at what cost), and the lock by which runs take turns."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_pipeline import __version__
from eval_pipeline.asking.answers import Counters
from eval_pipeline.core.covering.cost_limit import CostLimit
from eval_pipeline.core.errors import EvalError, LockedError
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Partition
from eval_pipeline.providers.prices import price_version
from eval_pipeline.store.durable import locked
from eval_pipeline.store.published.ddl import FORMAT
from eval_pipeline.store.published.memo import published_memo, refuse_newer
from eval_pipeline.store.record import Contents, RecordKey
from eval_pipeline.store.tables import RUNS
from eval_pipeline.workspace.homes.locks import held, lock_path
from eval_pipeline.workspace.workspace import Progress, Workspace

if TYPE_CHECKING:
    from eval_pipeline.state.leases import Lease
    from eval_pipeline.workspace.watching.watch import Watch

COMPLETE, INCOMPLETE, FAILED, CANCELED, RUNNING = "complete", "incomplete", "failed", "canceled", "running"
BROKEN_OFF = frozenset({FAILED, CANCELED})
"""Statuses of runs that did not come to their end."""
MADE_OF = ("evaluation_id", "identity", "prompt", "prompt_text")
"""Columns of `runs` that say what evaluation a run works on."""
_PATIENCE = 60.0
"""Seconds to wait for another process that writes a row, which takes a moment."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a stage needs to know about its run.

    Attributes:
        run_id: id of the run, which Dagster's has too.
        epoch: freshness epoch; it is part of the journal's keys, so that a new epoch asks the model again.
        asks: whether models may be asked; if not, responses that are neither recorded nor journalled are an error.
        asks_judge: whether the judge may be asked.
        canary: ask a few conversations first, and stop if hardly any answer is readable.
        exact: recompute figures made with other versions of libraries.
        cost_limit: the limit that it shares with all else that its command or night spends; None: there is none.
        watch: shows how far it is, and knows whether somebody wishes that it ends; None if nobody can watch it.
    """

    run_id: str = ""
    epoch: str = ""
    asks: bool = True
    asks_judge: bool = True
    canary: bool = True
    exact: bool = False
    cost_limit: CostLimit | None = None
    watch: "Watch | None" = None

    @property
    def beat(self) -> Callable[[], bool] | None:
        """What is to be called once a second while the run asks; None if nobody can watch it."""
        return None if self.watch is None else self.watch.beat


def record_run(
    workspace: Workspace, partition: Partition, run_id: str, counts: Counters | None = None, **changes: Any
) -> None:
    """Adds the run to the partition's `runs` or changes its columns; `counts` are added to the existing ones."""

    def changed() -> Contents:
        rows = run_rows(workspace, replace(partition, evaluation=""))
        row = next((row for row in rows if row["run_id"] == run_id), None)
        if row is None:
            row = dict.fromkeys(column.name for column in RUNS.columns)
            row |= {"run_id": run_id, "status": RUNNING, "started_at": now()}
            row |= {"evaluation_id": partition.evaluation or None}
            rows.append(row)
        row.update(changes)
        if counts is not None:
            made = {"calls": counts.calls, "responses": counts.responses}
            made |= {"journal_hits": counts.journal_hits, "call_errors": counts.failures}
            made |= {"calls_refused": counts.refused, "tokens_spent": counts.tokens}
            row.update({name: (row[name] or 0) + count for name, count in made.items()})
            if counts.usd is not None:
                row["usd_spent"] = (row["usd_spent"] or 0.0) + counts.usd
        return {"runs": str(len(rows))}, {column.name: [row[column.name] for row in rows] for column in RUNS.columns}

    with locked(lock_file(workspace, partition, "runs"), _PATIENCE):
        workspace.record.rewrite(RUNS, RecordKey.of(partition), changed)


def open_run(
    workspace: Workspace,
    partition: Partition,
    run: RunContext,
    scope: str,
    turns: int,
    cases: int,
    made_of: Mapping[str, Any],
) -> None:
    """Records that a run works on a partition, with the planned numbers of turns (times samples) and cases.

    `made_of` are the columns `MADE_OF`, which say what evaluation it is.

    Raises:
        StoreError: the results could not be published, as a newer version made the store; no model is asked for them.
    """
    store = workspace.home.store
    refuse_newer(store, published_memo(store), FORMAT)
    record_run(
        workspace,
        partition,
        run.run_id,
        Counters(),
        status=RUNNING,
        finished_at=None,
        scope=scope,
        turns_planned=turns,
        cases_planned=cases,
        epoch=run.epoch,
        **made_of,
        software=json_text({"eval_pipeline": __version__, "genai-prices": price_version()}),
    )


def is_closed(workspace: Workspace, partition: Partition) -> bool:
    """Whether the last run of an evaluation ended as it should."""
    rows = run_rows(workspace, partition, ["status"])
    return bool(rows) and rows[-1]["status"] in {COMPLETE, INCOMPLETE}


def end_run(workspace: Workspace, partition: Partition, run_id: str, status: str, *, died: bool = False) -> None:
    """Records how a run ended; does nothing if it has no row in the partition's `runs` or has that status already.

    When a process that `died` ended nobody knows, so `finished_at` stays NULL: it may have paid for more than is noted.
    """
    rows = run_rows(workspace, partition, ["run_id", "status"])
    if any(row["run_id"] == run_id and row["status"] not in {status, *BROKEN_OFF} for row in rows):
        ended: dict[str, Any] = {} if died else {"finished_at": now()}
        record_run(workspace, partition, run_id, status=status, **ended)


@contextmanager
def ending_failed(workspace: Workspace, partition: Partition, run_id: str) -> Iterator[None]:
    """Records that the run failed, or was canceled, if the block raises."""
    try:
        yield
    except BaseException as error:
        with suppress(EvalError):  # the error that ended the run is the one to report
            end_run(workspace, partition, run_id, broken_off(error))
        raise


def broken_off(error: BaseException) -> str:
    """Returns the status of a run that this ended: what is no `Exception` comes from whoever ended it by hand."""
    return FAILED if isinstance(error, Exception) else CANCELED


def end_dead_runs(workspace: Workspace, run_ids: Collection[str], status: str = FAILED) -> set[str]:
    """Gives runs whose process is gone that status; returns those that are of this home.

    The time of their end is unknown, so `finished_at` stays NULL.
    """
    known = set[str]()
    for key in workspace.record.partitions(RUNS) if run_ids else ():
        partition = key.partition()
        for row in run_rows(workspace, partition, ["run_id", "status"]):
            if row["run_id"] in run_ids:
                known.add(row["run_id"])
                if row["status"] == RUNNING:
                    record_run(workspace, partition, row["run_id"], status=status)
    return known


def run_rows(workspace: Workspace, partition: Partition, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Returns the rows of the partition's `runs`, in the order in which they were added.

    Those of all evaluations of its date; of an earlier one only its own, or those that do not say whose they are.
    """
    key = RecordKey.of(partition)
    if workspace.record.header(RUNS, key) is None:
        return []
    if not partition.evaluation:
        rows: list[dict[str, Any]] = workspace.record.read(RUNS, key, columns).to_pylist()
        return rows
    rows = workspace.record.read(RUNS, key).to_pylist()
    own = [row for row in rows if row["evaluation_id"] == partition.evaluation]
    own = own or [row for row in rows if row["evaluation_id"] is None]
    return own if columns is None else [{name: row[name] for name in columns} for row in own]


@contextmanager
def partition_lock(workspace: Workspace, partition: Partition, progress: Progress) -> Iterator["Lease | None"]:
    """Allows only one run at a time to ask models for a partition and write the results; others wait without limit.

    The kernel releases the lock when the process dies, the database when its lease is not renewed. A thread must not
    take it twice.
    """
    place = f"{partition.suite} · {partition.model_version} · {partition.eval_date}"
    with in_turn(workspace, asking_parts(partition), place, progress) as lease:
        yield lease


@contextmanager
def in_turn(workspace: Workspace, parts: Sequence[str], place: str, progress: Progress) -> Iterator["Lease | None"]:
    """Holds a lock of the home, see `held`; while another run has it, waits without limit and says so."""
    with ExitStack() as stack:
        try:
            lease = stack.enter_context(held(workspace.home.root, parts, 0))
        except LockedError:
            label = f"waiting for another run of {place}"
            progress.start(label, 0)
            try:
                lease = stack.enter_context(held(workspace.home.root, parts, inf))
            finally:
                progress.finish(label)
        yield lease


@contextmanager
def unused_partition(workspace: Workspace, partition: Partition) -> Iterator[bool]:
    """Takes the asking lock of a partition if no run holds it; yields whether it was taken."""
    with ExitStack() as stack:
        try:
            stack.enter_context(held(workspace.home.root, asking_parts(partition), 0))
        except LockedError:
            yield False
            return
        yield True


def asking_parts(partition: Partition) -> tuple[str, ...]:
    """Returns the names of folders and of the lock of an evaluation."""
    return (*RecordKey.of(partition).folders(RUNS), "asking")


def lock_file(workspace: Workspace, partition: Partition, name: str) -> Path:
    """Returns the path of an evaluation's lock file."""
    return lock_path(workspace.home.root, (*RecordKey.of(partition).folders(RUNS), name))


def fresh_epoch() -> str:
    """Returns a freshness epoch that no earlier run has had, not even one of the same second."""
    return datetime.now().isoformat(timespec="microseconds")


def now() -> datetime:
    """Returns the current time in UTC without a time zone, as in the store's TIMESTAMP columns."""
    return datetime.now(UTC).replace(tzinfo=None)
