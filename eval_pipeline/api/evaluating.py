"""Evaluates partitions: runs stages that are out of date, then updates store and reports from the record."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from eval_pipeline.api.homes import FORGET
from eval_pipeline.core.covering.cost_limit import CostLimit
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.model import Partition
from eval_pipeline.core.system.interrupts import interruptible
from eval_pipeline.operations.runs.changes import changes_told
from eval_pipeline.operations.runs.publication import Publication
from eval_pipeline.operations.runs.running import Finished, Request, Runs
from eval_pipeline.operations.upkeep.completing import compared_if_interrupted, complete_left, running
from eval_pipeline.operations.upkeep.keeping import (
    close_evaluations,
    evaluation_is_current,
    keep_comparisons,
    keep_evaluations,
    make_comparisons,
    remarks,
)
from eval_pipeline.store.tables import STATISTICS
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.noting.commands import Command
from eval_pipeline.workspace.progress import counted
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.watching.running import forget_superseded
from eval_pipeline.workspace.watching.watch import Tell, asked_for, watching
from eval_pipeline.workspace.workspace import Progress, Workspace


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The outcome of evaluating partitions.

    Attributes:
        problems: one sentence per problem, beginning with the suite and the model version.
        done: the partitions whose aggregates are in the record.
        notes: one sentence per remark that is not an error.
    """

    problems: list[str]
    done: list[Partition]
    notes: list[str]


Launcher = Callable[[Workspace, Request, Progress], Sequence[Finished]]
"""Evaluates what is out of date and delivers it; `demo` has one that starts Dagster's runs."""


def evaluate(
    workspace: Workspace,
    partitions: Sequence[Partition],
    scope: Scope,
    epoch: str,
    progress: Progress,
    *,
    report: bool,
    canary: bool = True,
    launcher: Launcher | None = None,
    cost_limit: CostLimit | None = None,
    tell: Tell | None = None,
    known_as: str = "",
) -> Evaluated:
    """Runs the stages that are out of date, in this process.

    Args:
        workspace: the workspace of the home.
        partitions: the evaluations to make, all of one date.
        scope: the part of the suites to evaluate.
        epoch: freshness epoch; with a new epoch the models are asked again.
        progress: receives the progress.
        report: write the report files too.
        canary: whether to stop if hardly any of the first answers can be read.
        launcher: what evaluates instead.
        cost_limit: the limit on everything that is spent; None: there is none.
        tell: gets a line on how far it is every ten seconds.
        known_as: the id by which those who watch know it; by default a new one.
    """
    left = complete_left(workspace, progress, forget=FORGET)
    context = RunContext(epoch=epoch)
    seen = {p: Inputs.of(workspace, p, run=context, scope=scope, progress=progress) for p in partitions}
    looked_at = counted(progress, "looking what is out of date", seen.items(), len(seen))
    current = [partition for partition, inputs in looked_at if evaluation_is_current(inputs)]
    workspace.fingerprints.save()
    command = Command(workspace.home, "run")
    publication = Publication(workspace, command)
    due = [partition for partition in partitions if partition not in current]
    asked = asked_for(partitions, scope, epoch, report=report, canary=canary, cost_limit=cost_limit)
    watching_it = watching(workspace.home, "run", asked, evaluations=len(due), tell=tell, known_as=known_as)
    with watching_it as watch, running(publication), interruptible():
        forget_superseded(workspace.home, watch.status)
        request = Request(due, scope, epoch, report, canary, cost_limit, watch)
        kept = close_evaluations([seen[found] for found in current], publication)
        finished: Sequence[Finished] = ()
        runs = Runs(workspace, request, publication, progress)
        if request.partitions:
            with compared_if_interrupted(publication, workspace, progress):
                finished = launcher(workspace, request, progress) if launcher else runs.evaluate()
        broken = {found.suite for found in finished if not found.model_version}
        recorded = {key.suite for key in workspace.record.partitions(STATISTICS)}
        suites = [suite for suite in dict.fromkeys(p.suite for p in partitions) if suite in recorded - broken]
        run = RunContext(next(reversed(command.noted.runs), ""))
        compared = {suite: Inputs(workspace, suite, run=run, progress=progress) for suite in suites}
        watch.together("comparing")
        failed = make_comparisons(list(compared.values()), command)
        watch.together("publishing")
        publication.publish()
        runs.deliver()
        told = keep_evaluations(kept, publication, with_report=report)
        whole = _whole(partitions, finished, told)
        dated = [
            (inputs, {place.model_version: place.eval_date for place in whole if place.suite == suite})
            for suite, inputs in compared.items()
        ]
        wrong, drifts = keep_comparisons(dated, failed, command, with_report=report)
        watch.status.problems = [error for found in finished for error in found.errors]
    problems = list(left)
    for found in finished:
        name = ", ".join(filter(None, (found.suite, found.model_version)))
        problems += [f"{name}: {error}" for error in found.errors]
    for place, sentences in told.items():  # a damaged file of one evaluation must not stop the others
        name = f"{place.suite}, {place.model_version}"
        problems += [f"{name}: {sentences}"] if isinstance(sentences, StoreError) else sentences
    notes = [text for partition in current for text in changes_told(seen[partition])]
    notes += [f"warning: {text}" for partition in whole for text in remarks(seen[partition].anew())]
    return Evaluated(problems + wrong, whole, notes + [f"warning: {text}" for text in drifts])


def _whole(
    partitions: Sequence[Partition],
    finished: Sequence[Finished],
    told: Mapping[Partition, list[str] | StoreError],
) -> list[Partition]:
    """Returns the evaluations that are whole."""
    broken = {(found.suite, found.model_version) for found in finished if found.incomplete}
    broken |= {(place.suite, place.model_version) for place, said in told.items() if isinstance(said, StoreError)}
    return [p for p in partitions if not {(p.suite, ""), (p.suite, p.model_version)} & broken]
