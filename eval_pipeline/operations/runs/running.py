"""Runs the stages of evaluations that are out of date, one after the other in this process.

Each model version is one run, with one budget. Nothing is published before the last, because each publishing copies the
store: the caller compares and publishes between `evaluate` and `deliver`.
"""

import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import uuid4

from eval_pipeline.chain.evaluation import chain_of, evaluating, ingesting
from eval_pipeline.chain.stage import Chain, Stage, before
from eval_pipeline.core.covering.cost_limit import CostLimit
from eval_pipeline.core.errors import EvalError, StoreError
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.runs.publication import Publication
from eval_pipeline.operations.runs.steps import failure, failures, made, note_step, noted_step
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.noting.note_files import stamp
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.watching.watch import Watch
from eval_pipeline.workspace.workspace import Progress, Workspace

PUBLISHED, REPORT = "published", "report"


@dataclass(frozen=True, slots=True)
class Request:
    """What to run.

    Attributes:
        partitions: all with the same evaluation date.
        epoch: freshness epoch; a new one asks the models again.
        with_report: also make the report files.
        canary: stop if hardly any of the first answers is readable.
        cost_limit: the limit on everything that is spent; None: there is none.
        watch: shows how far it is; None if nobody can watch it.
    """

    partitions: Sequence[Partition]
    scope: Scope = field(default_factory=Scope)
    epoch: str = ""
    with_report: bool = True
    canary: bool = True
    cost_limit: CostLimit | None = None
    watch: Watch | None = None


@dataclass(slots=True)
class Finished:
    """The result of one suite for one model version; `model_version` is empty if the suite's files or cases are wrong.

    Attributes:
        errors: a sentence for each failed stage, and for each failed check that is not a warning.
        incomplete: whether a stage failed or was left out, so that there is nothing to show.
    """

    suite: str
    model_version: str
    errors: list[str] = field(default_factory=list)
    incomplete: bool = False


class Runs:
    """The runs of one command."""

    def __init__(self, workspace: Workspace, request: Request, publication: Publication, progress: Progress) -> None:
        self._workspace, self._request, self._progress = workspace, request, progress
        self._publication, self._command = publication, publication.command
        self._read: dict[str, Finished] = {}
        self._closed: list[tuple[Inputs, Finished]] = []

    def evaluate(self) -> list[Finished]:
        """Runs the suites for each model version; a failing suite does not stop the others.

        Returns:
            A result for each partition, and one without model version for a suite that cannot be read. What is
            whole is closed, so that it can be published; `deliver` adds to the errors.
        """
        finished: list[Finished] = []
        for name in dict.fromkeys(place.model_version for place in self._request.partitions):
            places = [place for place in self._request.partitions if place.model_version == name]
            request = self._request
            run = RunContext(str(uuid4()), request.epoch, canary=request.canary, cost_limit=request.cost_limit)
            run = replace(run, watch=request.watch)
            self._command.note_run(run.run_id, places, scope=self._request.scope.label(), epoch=run.epoch)
            finished += [self._evaluated(place, run) for place in places if not self._is_broken(place.suite)]
        return finished

    def deliver(self) -> None:
        """Notes how the closed evaluations were published, and writes their reports."""
        for inputs, told in self._closed:
            try:
                deliver_noted(inputs, self._publication, with_report=self._request.with_report)
            except EvalError as error:
                told.errors.append(str(error))
                told.incomplete |= isinstance(self._publication.outcome[inputs.place], StoreError)

    def _is_broken(self, suite: str) -> bool:
        return suite in self._read and self._read[suite].incomplete

    def _evaluated(self, place: Partition, run: RunContext) -> Finished:
        """Makes an evaluation; before the first of its suite, the files and cases are read."""
        scope, progress = self._request.scope, self._progress
        inputs = Inputs.of(self._workspace, place, run=run, scope=scope, progress=progress)
        source = self._workspace.suite(place.suite)
        chain = chain_of(source.track() if source.header else None)
        if place.suite not in self._read:
            told = self._read[place.suite] = Finished(place.suite, "")
            self._walk(ingesting(chain), inputs, told)
            if told.incomplete:
                return told
            errors = told.errors
        else:
            errors = []
        told = Finished(place.suite, place.model_version, errors)
        self._walk([stage for stage in evaluating(chain) if not stage.deliver], inputs, told)
        if not told.incomplete:
            self._publication.close(inputs.anew())
            self._closed.append((inputs.anew(), told))
        return told

    def _walk(self, chain: Chain, inputs: Inputs, told: Finished) -> None:
        """Runs stages; those that need what a failed one would have made are left out."""
        missing: set[str] = set()
        for stage in chain:
            if missing.intersection(before(chain, stage)) or not self._step(stage, inputs, told):
                missing.add(stage.name)
        told.incomplete = bool(missing)

    def _step(self, stage: Stage, inputs: Inputs, told: Finished) -> bool:
        """Runs a stage; returns whether what depends on it can be made."""
        try:
            step = noted_step(stage, inputs.anew(), self._command)
        except EvalError as error:
            told.errors.append(failure(error))
        except Exception:  # a fault of ours or of a plug-in: the other suites go on
            told.errors.append(f"{stage.name} ended with an unexpected error:\n\n{traceback.format_exc()}")
        else:
            told.errors += failures(step)
            return not step.blocked
        return False


def deliver_noted(inputs: Inputs, publication: Publication, *, with_report: bool) -> None:
    """Notes how an evaluation was published, and writes its report.

    Raises:
        EvalError: it could not be published, or the report not be written.
    """
    for stage in evaluating(chain_of(inputs.track)):
        if stage.name == PUBLISHED:
            began = stamp()
            try:
                step = publication.step(stage, inputs)
            except StoreError as error:
                note_step(publication.command, stage, inputs, began, {"error": str(error)})
                raise
            note_step(publication.command, stage, inputs, began, made(step))
        elif stage.name == REPORT and with_report:
            noted_step(stage, inputs, publication.command)
