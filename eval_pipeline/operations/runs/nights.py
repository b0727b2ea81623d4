"""Nights on a diet: a random part of a suite, tested against the last full evaluation (docs/adaptive.md)."""

from collections.abc import Iterator
from dataclasses import dataclass

from eval_pipeline.analysis.draws.history import baseline_of
from eval_pipeline.core.covering.until import Until
from eval_pipeline.core.errors import EvalError, UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.core.model_versions import Nightly
from eval_pipeline.operations.runs.drawing import ask_until, check_until
from eval_pipeline.operations.runs.rescoring import rescore_changed
from eval_pipeline.store.tables import CASES, GENERATIONS
from eval_pipeline.workspace.asked.scope import FULL, Scope
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True)
class NightPlan:
    """What a night asks of a suite.

    Attributes:
        scope: the part that was asked, or the whole suite, which has not been asked yet.
        text: which of the two, and why, as a sentence without its full stop.
        problem: why the part is not complete; empty if it is.
    """

    scope: Scope
    text: str
    problem: str = ""


def rule_of(model_version: str, part: str) -> Until:
    """Returns the stopping rule of a night: decided against the model version's own last full evaluation.

    Raises:
        UsageError: the part is not from 1% to 99%.
    """
    return Until.parse(f"decided-against {model_version} within {part}")


def ask_part(inputs: Inputs, part: str) -> NightPlan:
    """Asks a random part of the suite, up to the scored turns, unless there is nothing to compare it with.

    Before, the full evaluation is scored anew from its answers if the code has changed, so that the change is not taken
    for the model's.

    Raises:
        EvalError: a stage failed, or the draw is not possible.
    """
    workspace, place = inputs.workspace, inputs.place
    rule = rule_of(place.model_version, part)
    check_until(workspace, place, rule)
    header = inputs.header(GENERATIONS)
    if header is not None and header.made_from.get("scope", FULL) == FULL:
        return NightPlan(Scope(), "the whole suite is asked: it has been asked in full on this date before")
    try:
        baseline = baseline_of(inputs, place.model_version)
        for full in rescore_changed(workspace, [baseline], inputs.progress):
            if full.problem:
                raise UsageError(f"the evaluation of {full.partition.eval_date} cannot be scored anew: {full.problem}")
    except UsageError as error:
        return NightPlan(Scope(), f"the whole suite is asked: {error}")
    asked = ask_until(workspace, place, rule, 0, inputs.run, inputs.progress)
    text = f"at most {part} of the cases are asked and compared with the full evaluation of {baseline.eval_date}"
    return NightPlan(asked.scope, text, asked.problem)


def night_lines(workspace: Workspace, partition: Partition, nightly: Nightly) -> Iterator[str]:
    """Yields what the nightly schedule asks, for `plan`; asks nothing and writes nothing."""
    inputs = Inputs.of(workspace, partition)
    weekly = f"the whole suite on {nightly.full}s"
    try:
        if inputs.header(CASES) is None:
            raise UsageError(f"'{partition.suite}' was never evaluated")
        found = baseline_of(inputs, partition.model_version)
    except EvalError as error:
        yield f"  nightly   the whole suite until there is a full evaluation of this edition ({error})"
        yield f"            then at most {nightly.part} of the cases, {weekly}"
        return
    yield f"  nightly   at most {nightly.part} of the cases, against the full evaluation of {found.eval_date}; {weekly}"
