"""Evaluates partitions: runs stages that are out of date, then updates store and reports from the record."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.changes import changes_told
from eval_pipeline.operations.keeping import (
    close_evaluations,
    evaluation_is_current,
    keep_comparisons,
    keep_evaluations,
    remarks,
)
from eval_pipeline.operations.publication import Publication
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.progress import counted
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.scope import Scope
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


def evaluate(
    workspace: Workspace,
    partitions: Sequence[Partition],
    scope: Scope,
    epoch: str,
    progress: Progress,
    *,
    report: bool,
    canary: bool = True,
) -> Evaluated:
    """Runs the stages that are out of date.

    Args:
        workspace: the workspace of the home.
        partitions: the evaluations to make, all of one date.
        scope: the part of the suites to evaluate.
        epoch: freshness epoch; with a new epoch the models are asked again.
        progress: receives the progress.
        report: write the report files too.
        canary: whether to stop if hardly any of the first answers can be read.
    """
    broken: set[tuple[str, str]] = set()
    context = RunContext(epoch=epoch)
    seen = {p: Inputs.of(workspace, p, run=context, scope=scope, progress=progress) for p in partitions}
    looked_at = counted(progress, "looking what is out of date", seen.items(), len(seen))
    current = [partition for partition, inputs in looked_at if evaluation_is_current(inputs)]
    workspace.fingerprints.save()
    # All evaluations of a command are published together, because each publishing copies the store.
    publication = Publication(workspace)
    kept = close_evaluations([seen[found] for found in current], publication)
    problems = []
    stale = [partition for partition in partitions if partition not in current]
    if stale:
        # This takes a second and is not needed if there is nothing to run.
        from eval_pipeline.defs.running.launch import Request, run

        for finished in run(workspace.home, Request(stale, scope, epoch, report, canary, publication), progress):
            name = ", ".join(filter(None, (finished.suite, finished.model_version)))
            problems += [f"{name}: {error}" for error in finished.errors]
            if finished.incomplete:
                broken.add((finished.suite, finished.model_version))
    publication.publish()
    for found, told in keep_evaluations(kept, publication, with_report=report).items():
        if isinstance(told, StoreError):  # a damaged file of one evaluation must not stop the others
            problems.append(f"{found.suite}, {found.model_version}: {told}")
            broken.add((found.suite, found.model_version))
        else:
            problems += told
    notes = [text for partition in current for text in changes_told(seen[partition])]
    whole = [p for p in partitions if not {(p.suite, ""), (p.suite, p.model_version)} & broken]
    notes += [f"warning: {text}" for partition in whole for text in remarks(seen[partition].anew())]
    asked: dict[str, dict[str, date]] = {}
    for partition in whole:
        asked.setdefault(partition.suite, {})[partition.model_version] = partition.eval_date
    suites = [(Inputs(workspace, suite, progress=progress), dates) for suite, dates in asked.items()]
    wrong, drifts = keep_comparisons(suites, with_report=report)
    problems += wrong
    notes += [f"warning: {text}" for text in drifts]
    return Evaluated(problems, whole, notes)
