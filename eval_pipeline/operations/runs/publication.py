"""Publishes the evaluations of a command together, because each publishing copies the store."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from eval_pipeline.chain.stage import Stage
from eval_pipeline.chain.wholeness import gate
from eval_pipeline.core.errors import LockedError, StoreError
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.runs.steps import Step
from eval_pipeline.stages.publishing import (
    Closed,
    as_closed,
    close_run,
    left_out,
    mark_failed,
    publish_all,
    publish_together,
    published_as,
)
from eval_pipeline.store.published.publisher import PublishResult
from eval_pipeline.store.record import RecordKey
from eval_pipeline.tracks.scored.turns_table import turns_table
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.noting.commands import Command
from eval_pipeline.workspace.noting.noted import Entry, told_of
from eval_pipeline.workspace.runs import ending_failed
from eval_pipeline.workspace.workspace import Progress, StageResult, Workspace


class Publication:
    """The evaluations of one command, which are published in one go.

    Attributes:
        command: its note, in which they stand as unpublished, and their suites as uncompared, until they are not.
        outcome: what came of the evaluations that have been published, or failed to be.
    """

    def __init__(self, workspace: Workspace, command: Command) -> None:
        self.command = command
        self.outcome: dict[Partition, PublishResult | StoreError] = {}
        self._workspace = workspace
        self._closed: dict[Partition, Closed] = {}

    def close(self, inputs: Inputs, *, made: bool = True) -> None:
        """Closes an evaluation's run, so that `publish` includes it; an error becomes its outcome.

        If nothing was `made`, no run is noted: then publishing only compares what the store has with the record.
        """
        place = inputs.place
        try:
            with ending_failed(inputs.workspace, place, inputs.run.run_id):
                self.command.note({"unpublished": told_of(place)})
                self._closed[place] = close_run(inputs) if made else as_closed(inputs)
        except StoreError as error:
            self.outcome[place] = error

    def published(self, stage: Stage, inputs: Inputs) -> Step:
        """Publishes an evaluation, with all others that are closed; see `step`."""
        if inputs.place not in {*self._closed, *self.outcome}:
            self.close(inputs)  # the run has no other stage of it
        self.publish()
        return self.step(stage, inputs)

    def publish(self) -> None:
        """Publishes the closed evaluations.

        If one evaluation is damaged, each is published by itself, so that it does not stop the others. Where another
        process holds the store's lock all have failed, instead of each waiting as long again.
        """
        runs = list(self._closed.values())
        if not runs:
            return
        try:
            self._note_outcome(runs, publish_together(runs, gate(self._workspace)))
        except LockedError as error:
            mark_failed(runs)
            self.outcome |= {closed.inputs.place: error for closed in runs}
        except StoreError:
            self._publish_each(runs)
        self._closed.clear()
        self.command.done({"published": True})

    def compared(self, suite: str) -> None:
        """Notes that the comparisons of a suite are published, if they were due."""
        if suite in self.command.noted.uncompared:
            self.command.done({"compared": suite})

    def step(self, stage: Stage, inputs: Inputs) -> Step:
        """Returns what publishing an evaluation has made, as the step of the stage that publishes it.

        Raises:
            StoreError: it could not be published.
        """
        outcome = self.outcome[inputs.place]
        if isinstance(outcome, StoreError):
            raise outcome
        held = [table for table in stage.reads if table.key == "partition"]
        return Step(published_as(inputs, held, outcome), [(check, check.verdict(inputs)) for check in stage.checks])

    def _publish_each(self, runs: Sequence[Closed]) -> None:
        shut = gate(self._workspace)
        for closed in runs:
            try:
                self._note_outcome([closed], publish_together([closed], shut))
            except StoreError as error:
                mark_failed([closed])
                self.outcome[closed.inputs.place] = error

    def _note_outcome(self, runs: Sequence[Closed], published: PublishResult) -> None:
        why = {key: sentence for (key, _), sentence in zip(published.left_out, left_out(published), strict=True)}
        for closed in runs:
            refused = why.get(closed.keys[0])
            self.outcome[closed.inputs.place] = StoreError(refused) if refused else published


def publish_record(workspace: Workspace, *, full: bool, progress: Progress) -> StageResult:
    """Publishes everything that differs from the record; if it is killed, the next command does. Raises StoreError."""
    command = Command(workspace.home, "publish")
    command.note({"due": "publish"})
    result = publish_all(workspace, gate(workspace), full=full, progress=progress)
    command.settle()
    return result


def not_filled(workspace: Workspace) -> Iterator[str]:
    """Yields a sentence for each suite whose turns have columns that its evaluations do not know yet.

    Of each model version the first and the newest evaluation are looked at.
    """
    for source in workspace.suites.values():
        if source.header is None:
            continue
        table = turns_table(source.track())
        keys = workspace.record.partitions(table, RecordKey.of_suite(source.name))  # by model version and date
        ends = [{key.model_version: key for key in series}.values() for series in (keys, reversed(keys))]
        known = [workspace.record.known(table, key) for key in dict.fromkeys(chain(*ends))]
        lacking = [column.name for column in table.columns if any(column.name not in names for names in known)]
        if lacking:
            told = f"{table.name} has NULL of before in {', '.join(lacking)}"
            yield f"{source.name}: {told}; `eval-pipeline rescore --suite {source.name}` fills it and asks no model"


def finish(workspace: Workspace, _: Sequence[Entry], progress: Progress, __: Callable[..., object]) -> None:
    """Completes a publishing that was killed. Raises StoreError."""
    publish_all(workspace, gate(workspace), full=False, progress=progress)
