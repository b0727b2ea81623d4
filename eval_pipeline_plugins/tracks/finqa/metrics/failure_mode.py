"""The failure mode: what went wrong, in one word."""

from collections.abc import Sequence

from eval_pipeline_plugins.tracks.finqa.cases.document import Document
from eval_pipeline_plugins.tracks.finqa.conversation import EarlierTurn
from eval_pipeline_plugins.tracks.finqa.mistakes.faults import calculation_fault, has_other_operations, is_scale_error
from eval_pipeline_plugins.tracks.finqa.mistakes.inheriting import inherits, takes_up_wrong, without_inherited
from eval_pipeline_plugins.tracks.finqa.programs.matching import Answer
from eval_pipeline_plugins.tracks.finqa.programs.program import Program


def failure_mode(
    numerical_match: bool,
    exact_match: bool | None,
    no_answer: bool,
    refused: bool,
    failed: bool,
    sign_agnostic_match: bool,
    predicted: Answer,
    expected: float | str,
    plan_program: Program | None,
    resolved_plan: Program | None,
    resolved_gold: Program,
    resolved_plan_operations: Sequence[str] | None,
    resolved_gold_operations: Sequence[str],
    own_earlier: Sequence[EarlierTurn] | None,
    document: Document,
    guessed_plan: Program | None,
) -> str | None:
    """Returns the first of `FAILURE_MODES` that applies; None for a correct turn without a rounding difference.

    Of an answer without a calculation, one slip against the gold is a better explanation than a calculation guessed
    from the page.
    """
    if numerical_match:
        return "rounding" if exact_match is False else None
    for applies, mode in ((no_answer, "no_answer"), (refused, "refusal"), (failed, "execution_error")):
        if applies:
            return mode
    earlier = own_earlier or ()
    if guessed_plan is not None:
        plan_program = resolved_plan = resolved_plan_operations = None
    taken_up = bool(earlier) and takes_up_wrong(predicted, plan_program, earlier)
    if taken_up and inherits(predicted, plan_program, earlier, expected, resolved_gold, document):
        return "inherited_error"
    if sign_agnostic_match:
        return "sign_error"
    if is_scale_error(predicted, expected, resolved_plan, resolved_gold):
        return "scale_error"
    if taken_up:
        plan = without_inherited(plan_program, earlier, resolved_gold, document)
        return calculation_fault(predicted, plan, resolved_gold, document, guessed_plan)
    if has_other_operations(resolved_plan_operations, resolved_gold_operations):  # a fast check with the same result
        return "wrong_operations"
    return calculation_fault(predicted, resolved_plan, resolved_gold, document, guessed_plan)
