"""Evaluates partitions until a rule is met, then updates store and reports from the record."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval_pipeline.api.evaluating import Evaluated, evaluate
from eval_pipeline.core.covering.cost_limit import CostLimit
from eval_pipeline.core.covering.until import Until
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.runs.drawing import ask_until
from eval_pipeline.operations.runs.ranking import check_rankable, rank
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.watching.watch import Tell, asked_for, watching
from eval_pipeline.workspace.workspace import Progress, Workspace


def evaluate_until(
    workspace: Workspace,
    partitions: Sequence[Partition],
    until: tuple[Until, int],
    epoch: str,
    progress: Progress,
    *,
    report: bool,
    canary: bool = True,
    cost_limit: CostLimit | None = None,
    tell: Tell | None = None,
    known_as: str = "",
) -> Evaluated:
    """Asks cases until the rule is met, then makes aggregates and reports from the answers.

    Args:
        workspace: the workspace of the home.
        partitions: the evaluations to make, all of one date.
        until: the rule, and the seed of the draw.
        epoch: as in `evaluate`.
        progress: receives the progress.
        report: as in `evaluate`.
        canary: as in `evaluate`.
        cost_limit: as in `evaluate`.
        tell: as in `evaluate`.
        known_as: as in `evaluate`.
    """
    rule, seed = until
    asked = asked_for(
        partitions, Scope(), epoch, report=report, canary=canary, cost_limit=cost_limit, until=(rule.label(), seed)
    )
    with watching(workspace.home, "run", asked, evaluations=len(partitions), tell=tell, known_as=known_as) as watch:
        run = RunContext(epoch=epoch, canary=canary, cost_limit=cost_limit, watch=watch)
        drawn = _drawn(workspace, partitions, until, run, progress)
        watch.status.problems = drawn.problems
    problems, notes, done = drawn.problems, drawn.notes, list[Partition]()
    for scope, places in drawn.scopes.items():
        found = evaluate(workspace, places, scope, epoch, progress, report=report, canary=canary, cost_limit=cost_limit)
        problems, done, notes = problems + found.problems, done + found.done, notes + found.notes
    return Evaluated(problems, [place for place in partitions if place in done], notes)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What was asked of each evaluation, and what is told of it."""

    scopes: dict[Scope, list[Partition]]
    problems: list[str]
    notes: list[str]


def _drawn(
    workspace: Workspace,
    partitions: Sequence[Partition],
    until: tuple[Until, int],
    run: RunContext,
    progress: Progress,
) -> _Drawn:
    """Asks cases until the rule is met."""
    rule, seed = until
    problems: list[str] = []
    scopes: dict[Scope, list[Partition]] = {}
    notes: list[str] = []
    if rule.ranked:
        check_rankable(partitions)
        for suite in dict.fromkeys(place.suite for place in partitions):
            ranking = rank(workspace, [place for place in partitions if place.suite == suite], seed, run, progress)
            problems += ranking.problems
            notes += [f"{suite}, ranked: {ranking.text}"] if ranking.text else []
            for place, scope in ranking.scopes.items():
                scopes.setdefault(scope, []).append(place)
    for place in () if rule.ranked else partitions:
        try:
            asked = ask_until(workspace, place, rule, seed, run, progress)
        except EvalError as error:  # the other evaluations go on
            problems.append(f"{place.suite}, {place.model_version}: {error}")
            continue
        scopes.setdefault(asked.scope, []).append(place)
        if asked.note:
            notes.append(f"{place.suite}, {place.model_version}: {asked.note}")
        if asked.problem:
            problems.append(f"{place.suite}, {place.model_version}: {asked.problem}")
    return _Drawn(scopes, problems, notes)
