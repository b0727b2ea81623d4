"""Reads the draw of an evaluation with the answers that the record has."""

from eval_pipeline.analysis.draws.looks import Answers, Draw
from eval_pipeline.core.errors import UsageError
from eval_pipeline.store.tables import TURN_RESULTS
from eval_pipeline.workspace.draws import design_of
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.scope import Scope


def answers_of(inputs: Inputs) -> Answers:
    """Returns the verdicts and costs of an evaluation's scored turns."""
    table = inputs.read(TURN_RESULTS, ["turn_id", "correct", "usd"])
    rows = list(zip(*(table[name].to_pylist() for name in ("turn_id", "correct", "usd")), strict=True))
    scored = {turn: float(correct) for turn, correct, _ in rows if correct is not None}
    return Answers(scored, {turn: usd for turn, _, usd in rows})


def draw_of(inputs: Inputs, scope: Scope) -> Draw:
    """Returns the draw of a scope, up to the first batch with unanswered turns.

    Raises:
        UsageError: there is no such draw, it does not fit its answers, or not even its first batch is answered.
    """
    design, answers = design_of(inputs.record, inputs.place, scope), answers_of(inputs)
    whole = len(design.batches)
    while whole and answers.missing(design.first(whole)):
        whole -= 1
    if not whole:
        raise UsageError(
            f"{answers.missing(design.first(1))} turns of the first batch have no verdict, so there is no estimate; "
            "run again to ask them"
        )
    return Draw(design.first(whole), answers)
