"""Rescoring: updates recorded evaluations to the current code using their responses, without asking models."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from uuid import uuid4

import pyarrow.compute as pc

from eval_pipeline.analysis.comparisons.compared import series_of
from eval_pipeline.analysis.comparisons.evaluations import CompleteEvaluation, evaluations_of, latest
from eval_pipeline.chain.evaluation import chain_of, evaluating, ingesting
from eval_pipeline.chain.freshness import is_current, prepared
from eval_pipeline.chain.runner import run_stage
from eval_pipeline.chain.stage import Stage
from eval_pipeline.core.covering.cost_limit import command_limit
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model import Partition
from eval_pipeline.core.system.interrupts import interruptible
from eval_pipeline.operations.runs.publication import Publication
from eval_pipeline.operations.runs.running import deliver_noted
from eval_pipeline.operations.runs.steps import failures, noted_step
from eval_pipeline.operations.upkeep.completing import RESCORE, running
from eval_pipeline.operations.upkeep.keeping import compare, publish_comparisons
from eval_pipeline.reports.places.paths import report_folder
from eval_pipeline.stages.attempts.asked import data_hash, is_resumed
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import CASES, GENERATIONS, STATISTICS, TURN_RESULTS
from eval_pipeline.workspace.asked.planned import recorded_epoch
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.evaluations import DATA, all_partitions
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.noting.commands import Command
from eval_pipeline.workspace.progress import SILENT
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.workspace import Progress, Workspace


@dataclass(frozen=True, slots=True)
class Rescored:
    """The result of rescoring one evaluation.

    Attributes:
        turns: number of scored turns, including samples.
        before, after: share of right turns; `after` is None if the evaluation was not scored again.
        low, high: the 95% interval of that share as it was last estimated, which bounds its digits.
        problem: why it was not scored again.
    """

    partition: Partition
    turns: int
    before: float | None
    after: float | None = None
    problem: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class ChosenEvaluations:
    """Which evaluations to consider; empty fields choose all."""

    suites: Collection[str] = ()
    model_versions: Collection[str] = ()
    dates: Collection[date] = ()

    def holds(self, partition: Partition) -> bool:
        """Whether an evaluation is chosen."""
        wanted = ((self.suites, partition.suite), (self.model_versions, partition.model_version))
        return all(not names or name in names for names, name in (*wanted, (self.dates, partition.eval_date)))


def evaluations(workspace: Workspace, chosen: ChosenEvaluations) -> list[Partition]:
    """Returns the chosen evaluations on record whose suites can be read."""
    found = []
    for partition in all_partitions(workspace):
        source = workspace.suites.get(partition.suite)
        if source is not None and source.header is not None and chosen.holds(partition):
            found.append(partition)
    return found


def outdated(
    workspace: Workspace, partitions: Iterable[Partition], *, ask_judge: bool = False, exact: bool = True
) -> list[Partition]:
    """Returns the evaluations that the current code (or, if `exact`, other library versions) may score differently."""
    return [
        partition
        for partition in partitions
        if _is_outdated(_inputs(workspace, partition, ask_judge=ask_judge, exact=exact))
    ]


def rescore(
    workspace: Workspace,
    partitions: Sequence[Partition],
    progress: Progress = SILENT,
    *,
    ask_judge: bool = False,
    exact: bool = True,
    compares: bool = True,
) -> list[Rescored]:
    """Updates evaluations to the current code; their previous figures are kept in `superseded_statistics`.

    Args:
        workspace: the workspace.
        partitions: the evaluations.
        progress: receives the progress.
        ask_judge: judge answers again if the question to the judge has changed.
        exact: also update if versions of libraries have changed.
        compares: compare the model versions of their suites afterwards; if not, the caller does.
    """
    publication = Publication(workspace, Command(workspace.home, RESCORE))
    limit = command_limit() if ask_judge else None
    with running(publication), interruptible():
        told = []
        for partition in partitions:
            inputs = _inputs(workspace, partition, ask_judge=ask_judge, exact=exact, progress=progress)
            inputs = inputs.anew(run=replace(inputs.run, cost_limit=limit))
            told.append(_rescored(inputs, publication))
        for name in dict.fromkeys(partition.suite for partition in partitions) if compares else ():
            run = RunContext(next(reversed(publication.command.noted.runs), ""))
            inputs = Inputs(workspace, name, run=run, progress=progress)
            compare(inputs, publication.command)
            publish_comparisons(inputs)
            publication.compared(name)
    return told


def _rescored(inputs: Inputs, publication: Publication) -> Rescored:
    turns, before, low, high = 0, None, None, None
    try:  # another run may have put it aside meanwhile, to make it anew
        (turns, before), (low, high) = scored(inputs), _ends(inputs)
        note_run(inputs, publication)
        if problem := _why_not(inputs):
            return Rescored(inputs.place, turns, before, None, problem, low, high)
        make_again(inputs, publication)
    except EvalError as error:
        return Rescored(inputs.place, turns, before, None, str(error), low, high)
    turns, after = scored(inputs)
    return Rescored(inputs.place, turns, before, after, "", low, high)


def _ends(inputs: Inputs) -> tuple[float | None, float | None]:
    """Returns the 95% interval of the share of right turns, as far as it is on record."""
    if inputs.header(STATISTICS) is None:
        return None, None
    rows = inputs.record.read(STATISTICS, RecordKey.of(inputs.place), ["metric", "split", "low", "high"]).to_pylist()
    whole = (row for row in rows if (row["metric"], row["split"]) == ("correct", "all"))
    return next(((row["low"], row["high"]) for row in whole), (None, None))


def note_run(inputs: Inputs, publication: Publication) -> None:
    """Notes a run of an evaluation, before anything of it or of its suite is made again."""
    scope, epoch = inputs.scope.label(), inputs.run.epoch
    publication.command.note_run(inputs.run.run_id, [inputs.place], scope=scope, epoch=epoch)


def make_again(inputs: Inputs, publication: Publication) -> None:
    """Runs the stages of an evaluation that are not current, publishes it, and updates its report if there is one.

    Raises:
        EvalError: a stage cannot be run.
    """
    command = publication.command
    for stage in _stages(inputs):
        step = noted_step(stage, inputs, command)
        if step.blocked:
            raise EvalError("; ".join(failures(step)))
    publication.close(inputs)
    publication.publish()
    with_report = report_folder(inputs.workspace.home.reports, inputs.place).exists()
    deliver_noted(inputs, publication, with_report=with_report)


def as_it_is(workspace: Workspace, partition: Partition) -> Rescored:
    """Returns the present state of an evaluation that could be rescored."""
    inputs = Inputs.of(workspace, partition)
    (turns, before), (low, high) = scored(inputs), _ends(inputs)
    return Rescored(partition, turns, before, low=low, high=high)


def rescore_compared(workspace: Workspace, suite: str, progress: Progress = SILENT) -> list[Rescored]:
    """Rescores what a nightly run compares: each model version's latest evaluation, the one before, and its first.

    Only changes of code count, not other versions of libraries.
    """
    series = evaluations_of(workspace, suite).items()
    compared = [one for name, found in series if not workspace.is_retired(name) for one in _compared(found)]
    return rescore_changed(workspace, compared, progress)


def rescore_changed(workspace: Workspace, partitions: Iterable[Partition], progress: Progress) -> list[Rescored]:
    """Rescores those of the evaluations whose code has changed; the caller compares."""
    return rescore(workspace, outdated(workspace, partitions, exact=False), progress, exact=False, compares=False)


def scored(inputs: Inputs) -> tuple[int, float | None]:
    """Returns the number of scored turns and the share of right ones, None if there are none."""
    correct = inputs.read(TURN_RESULTS, ["correct"])["correct"]
    return len(correct), pc.mean(correct).as_py() if len(correct) else None


def _compared(found: Sequence[CompleteEvaluation]) -> Iterator[Partition]:
    series = series_of(found)
    chosen = {id(one): one for one in (latest(found), *series[-2:], series[0])}
    yield from (one.partition for one in chosen.values())


def _inputs(
    workspace: Workspace, partition: Partition, *, ask_judge: bool, exact: bool, progress: Progress = SILENT
) -> Inputs:
    """Returns inputs with the scope and epoch of the evaluation's generations."""
    epoch = recorded_epoch(workspace, partition)
    run = RunContext(str(uuid4()), epoch, asks=False, asks_judge=ask_judge, exact=exact)
    header = Inputs.of(workspace, partition).header(GENERATIONS)
    scope = Scope.from_label(header.made_from.get("scope", "full")) if header else Scope()
    return Inputs.of(workspace, partition, run=run, scope=scope, progress=progress)


def _is_outdated(inputs: Inputs) -> bool:
    try:
        return not all(is_current(stage, prepared(stage, inputs)) for stage in _stages(inputs))
    except EvalError:
        return True  # rescoring reports the reason


def _stages(inputs: Inputs) -> list[Stage]:
    """Returns the stages that make an evaluation's tables, without those that ask if its answers stand as they are."""
    known = _can_be_read_again(inputs)
    chain = [stage for stage in chain_of(inputs.track) if stage.writes]
    return [stage for stage in (*ingesting(chain), *evaluating(chain)) if known or not stage.asks]


def _can_be_read_again(inputs: Inputs) -> bool:
    """Whether the answers may be read again: their model version is there, and would be asked the same.

    Where a repair has set the damaged answers aside, they are those that the journal has for today's question.
    """
    if inputs.place.model_version not in inputs.workspace.model_versions:
        return False
    lost = inputs.header(GENERATIONS) is None and not inputs.place.evaluation
    return lost or is_resumed(inputs)


def _why_not(inputs: Inputs) -> str:
    """Returns why an evaluation cannot be rescored; empty if it can."""
    for stage in _stages(inputs)[:2]:
        run_stage(stage, inputs)
    cases, generated = inputs.header(CASES), inputs.header(GENERATIONS)
    assert cases is not None
    if generated is None:
        return "it has no answers on record; `eval-pipeline run` asks for them"
    # If the model version exists, the stage itself finds the old answers by their prompts or reports that it cannot; if
    # only the gold has changed, all are found.
    known = _can_be_read_again(inputs)
    is_as_asked = generated.made_from.get(DATA) == data_hash(inputs)
    if not known and not is_as_asked and generated.made_from.get(CASES.name) != cases.content_hash:
        return "its questions or their gold have changed since; `eval-pipeline run` evaluates them anew"
    return ""
