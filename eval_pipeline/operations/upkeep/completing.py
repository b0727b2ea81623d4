"""Completes what commands and runs left that were killed: changes of the home, publishing what is whole, comparing."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from uuid import uuid4

from eval_pipeline.chain.wholeness import gate
from eval_pipeline.core.errors import EvalError, StoreError
from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.core.model import Partition
from eval_pipeline.core.system.interrupts import TwiceInterruptedError
from eval_pipeline.operations.runs.publication import Publication
from eval_pipeline.operations.upkeep.keeping import keep_comparisons, make_comparisons
from eval_pipeline.stages.publishing import keys_of, publish_keys
from eval_pipeline.store.listing import verify_files
from eval_pipeline.store.record import RecordKey
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.noting.commands import Command, Left, left_behind
from eval_pipeline.workspace.noting.note_files import stamp
from eval_pipeline.workspace.progress import SILENT
from eval_pipeline.workspace.runs import FAILED, RunContext, end_run
from eval_pipeline.workspace.tabled.track_tables import further_tables
from eval_pipeline.workspace.workspace import Progress, Workspace

FINISHING = {
    "import": Later("eval_pipeline.operations.imports.importing:finish"),
    "prune": Later("eval_pipeline.operations.upkeep.pruning:finish"),
    "publish": Later("eval_pipeline.operations.runs.publication:finish"),
    "repair": Later("eval_pipeline.operations.upkeep.repairing:finish"),
    "remove": Later("eval_pipeline.operations.upkeep.removing:finish"),
}
"""What is due by its name → what does it, however much of it was done: of workspace, entries, progress, `forget`."""
_UNCOMPARED = Later("eval_pipeline.store.published.compared:uncompared")
_RESCORING = Later("eval_pipeline.operations.runs.rescoring:rescore")
RESCORE = "rescore"
_log = logging.getLogger(__name__)
GONE = "The process of this run is gone; the next run goes on where it was."


@contextmanager
def running(publication: Publication) -> Iterator[None]:
    """Publishes what is closed and settles the note of a command, also if it is interrupted.

    What is due then stays noted, for the next command.
    """
    command, status = publication.command, "canceled"
    try:
        yield
        status = "success"
    except Exception:
        status = "failed"
        raise
    finally:
        with suppress(EvalError):  # an error that ended the command is the one to report
            publication.publish()
        end_runs(command, status)
        command.settle()


@contextmanager
def compared_if_interrupted(publication: Publication, workspace: Workspace, progress: Progress) -> Iterator[None]:
    """Where the block is interrupted, publishes and compares what is whole by then.

    Who interrupts that, or has interrupted twice, does not wait: comparing is left to the next command.
    """
    try:
        yield
    except TwiceInterruptedError:
        raise
    except KeyboardInterrupt:
        command = publication.command
        with suppress(EvalError):  # what is still due stays noted
            publication.publish()
            if suites := command.noted.uncompared:
                names = ", ".join(suites)
                _log.warning("comparing what is there of %s; Ctrl-C now leaves it to the next command", names)
                run = RunContext(next(reversed(command.noted.runs), ""))
                inputs = [Inputs(workspace, suite, run=run, progress=progress) for suite in suites]
                try:
                    keep_comparisons(
                        [(one, {}) for one in inputs], make_comparisons(inputs, command), command, with_report=True
                    )
                except KeyboardInterrupt:
                    _log.warning("not compared yet: %s; the next `run` or `publish` does it", names)
                    raise
        raise


def end_runs(command: Command, status: str) -> None:
    """Notes that the command's runs have ended; one of which a step failed has failed."""
    failed = command.noted.failed_runs
    for run in command.noted.open_runs:
        command.done({"run_ended": run, "status": "failed" if run in failed else status, "at": stamp()})


def complete_left(
    workspace: Workspace,
    progress: Progress = SILENT,
    name: str = "compare",
    forget: Callable[..., object] = lambda *_, **__: None,
) -> list[str]:
    """Completes what dead processes left; returns a sentence for each problem.

    No model is asked. Where a living process is going to compare a suite, its comparison is left to that one. What is
    compared is noted as by a command with that name. `forget` removes a model version from Dagster's storage.
    """
    with left_behind(workspace.home) as (found, living):
        if not found:
            return []
        for left in found:
            _fail_runs(workspace, left)
        live = {suite for noted in living for suite in noted.uncompared}
        problems, open_still = list[str](), set[int]()
        for number, left in enumerate(found):
            try:
                _finish(workspace, left, progress, forget)
            except EvalError as error:
                problems.append(f"the command `{left.noted.command}` was interrupted and is not done yet: {error}")
                open_still.add(number)
        try:
            problems += _publish_and_compare(workspace, found, live, progress, name)
        except StoreError as error:  # e.g. another process publishes: the notes stay for the next command
            return [*problems, f"what an interrupted command left is not published yet: {error}"]
        for number, left in enumerate(found):
            if number in open_still:
                continue
            if not live.intersection(left.noted.uncompared):
                left.settle()
            elif left.noted.unpublished:
                left.add({"published": True})
        return problems


def compare_what_is_new(workspace: Workspace, progress: Progress = SILENT, name: str = "compare") -> list[str]:
    """Compares the suites of which the store has figures that no comparison has seen; returns problems as above.

    Nobody need have noted that: whatever published them, and whatever failed meanwhile. A suite of which a run is under
    way, which compares or leaves a note when it ends, is left to that one. Nothing is done without a store.
    """
    if not workspace.home.store.exists():
        return []
    suites = dict.fromkeys(row["suite"] for row in _UNCOMPARED(workspace.home.store))
    if not suites:
        return []
    with left_behind(workspace.home) as (left, living):
        noted = {suite for one in (*(found.noted for found in left), *living) for suite in one.uncompared}
    return _compare(workspace, [suite for suite in suites if suite not in noted], progress, name, "", lambda: None)


def _fail_runs(workspace: Workspace, left: Left) -> None:
    for run, places in left.noted.open_runs.items():
        for place in places:
            end_run(workspace, place, run, FAILED, died=True)
        left.add({"run_ended": run, "status": "failed", "at": stamp(), "error": GONE})


def _finish(workspace: Workspace, left: Left, progress: Progress, forget: Callable[..., object]) -> None:
    if due := left.noted.due:
        FINISHING[due[0]["due"]](workspace, due, progress, forget)
    if left.noted.command == RESCORE:  # asks nobody; what is left of a run is the next run's
        places = (place for run in left.noted.open_runs.values() for place in run)
        _RESCORING(workspace, [place for place in places if gate(workspace)(RecordKey.of(place))], progress)


def _publish_and_compare(
    workspace: Workspace, found: Sequence[Left], live: set[str], progress: Progress, name: str
) -> list[str]:
    # A run may have made its last table and not noted it yet; one that had not got further may have read the files of
    # its suite anew.
    begun = [place for left in found for run in left.noted.open_runs.values() for place in run]
    places = dict.fromkeys((*(place for left in found for place in left.noted.unpublished), *begun))
    whole = {place for place in places if _is_whole(workspace, place)}
    keys = dict.fromkeys(key for place in places for key in keys_of(workspace, place)[place not in whole :])
    due = dict.fromkeys(suite for left in found for suite in left.noted.uncompared)
    due |= dict.fromkeys(place.suite for place in begun if place in whole)
    suites = [suite for suite in due if suite not in live]
    publish = partial(publish_keys, workspace, list(keys), gate(workspace)) if keys else lambda: None
    return _compare(workspace, suites, progress, name, _day(found), publish)


def _compare(
    workspace: Workspace,
    suites: Sequence[str],
    progress: Progress,
    name: str,
    day: str,
    publish: Callable[[], object],
) -> list[str]:
    """Compares what there is of suites, as a command with that name; returns a sentence for each problem.

    `publish` is called when the comparisons are made and not published yet. Raises StoreError.
    """
    readable = [suite for suite in suites if suite in workspace.suites and workspace.suites[suite].header]
    command, run = Command(workspace.home, name), RunContext(str(uuid4()))
    inputs = [Inputs(workspace, suite, run=run, progress=progress) for suite in readable]
    if inputs:
        command.note_run(run.run_id, (), readable, eval_date=day)
    failed = make_comparisons(inputs, command)
    publish()
    problems, _ = keep_comparisons([(one, {}) for one in inputs], failed, command, with_report=True)
    end_runs(command, "success")
    command.settle()
    return problems


def _day(found: Sequence[Left]) -> str:
    """Returns the evaluation date of what is due; empty if there are several."""
    entries = [entry for left in found for entry in left.noted.entries]
    days = {entry["unpublished"][2] for entry in entries if "unpublished" in entry}
    days |= {entry["eval_date"] for entry in entries if "uncompared" in entry and entry["eval_date"]}
    return days.pop() if len(days) == 1 else ""


def _is_whole(workspace: Workspace, partition: Partition) -> bool:
    """Whether an evaluation that a dead process left can be published; if not, `publish` and `doctor` say why."""
    key = RecordKey.of(partition)
    try:
        verify_files(workspace.record, further_tables(), key)
        return gate(workspace)(key) is None
    except EvalError:
        return False
