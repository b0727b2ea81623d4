"""Explains a failure mode in sentences."""

from collections.abc import Iterator, Mapping, Sequence
from math import log10
from typing import Any

from eval_pipeline.core.model import Attempt, Failed
from eval_pipeline.core.numbers import number_text
from eval_pipeline_plugins.tracks.finqa.cases.document import Document, cell_text
from eval_pipeline_plugins.tracks.finqa.conversation import EarlierTurn
from eval_pipeline_plugins.tracks.finqa.mistakes.faults import NumberPair, aligned, normal_tree
from eval_pipeline_plugins.tracks.finqa.mistakes.inheriting import inherits, without_inherited
from eval_pipeline_plugins.tracks.finqa.programs.matching import Answer, is_number
from eval_pipeline_plugins.tracks.finqa.programs.program import Literal, Program, expanded_operations
from eval_pipeline_plugins.tracks.finqa.responses.plan import FinqaPlan

_MOST_PAIRS = 5
_MISREAD = frozenset({"wrong_year", "wrong_row", "wrong_operands"})
_SAID: Mapping[str, str] = {
    "no_answer": "No attempt gave any text.",
    "refusal": "The model declined to answer.",
    "sign_error": "The size is right, the sign is not.",
    "swapped_operands": "It is the gold calculation with two operands the other way round.",
    "rounding": "Right within the tolerance, but not to the digits that are printed.",
    "other": "No simpler explanation was found.",
}


def why(
    mode: str,
    predicted: Answer,
    expected: float | str,
    told: Mapping[str, Any],
    final: Attempt[FinqaPlan],
    page: Document,
) -> str:
    """Returns a sentence on a failure mode.

    Args:
        mode: the metric's value.
        predicted: the answer.
        expected: the right answer.
        told: the metrics' values for the turn, see `conversation.own_values` and `conversation_values`.
        final: the last attempt.
        page: the page of the case.
    """
    if mode == "execution_error":
        return final.outcome.message if isinstance(final.outcome, Failed) else "The plan did not run."
    if mode == "inherited_error":
        plan = told["plan_program"] if told["guessed_plan"] is None else None
        return _inherited(predicted, expected, plan, told["earlier"], told["resolved_gold"], page)
    if mode == "scale_error":
        return _scaled(predicted, expected)
    gold: Program = told["resolved_gold"]
    own = told["own_earlier"]
    plan = without_inherited(told["plan_program"], own, gold, page) if own else told["resolved_plan"]
    if mode == "wrong_operations" and plan is not None:
        return f"Operations of the gold: {_operations(gold)}; of the answer: {_operations(plan)}."
    if mode in _MISREAD:
        pairs = _pairs(plan, predicted, gold)
        return "; ".join(_misread(pair, page) for pair in pairs) + "." if pairs else "It uses other numbers."
    return _SAID.get(mode, "")


def _inherited(
    predicted: Answer,
    expected: float | str,
    plan: Program | None,
    earlier: Sequence[EarlierTurn],
    gold: Program,
    page: Document,
) -> str:
    """Names the turns at fault: those whose right answer alone would have sufficed, or else all wrong ones."""
    wrong = [turn for turn in earlier if not turn.is_right]
    alone = [
        turn
        for turn in wrong
        if inherits(predicted, plan, [one for one in earlier if one.is_right or one is turn], expected, gold, page)
    ]
    told = ", ".join(
        f"turn {turn.index} ({answer_text(turn.predicted)} instead of {answer_text(turn.expected)})"
        for turn in alone or wrong
    )
    return f"It takes over the error of {told}; with the right answer there it would be right."


def _scaled(predicted: Answer, expected: float | str) -> str:
    if not is_number(predicted) or not is_number(expected) or not predicted or not expected:
        return ""
    power = round(log10(abs(predicted)) - log10(abs(expected)))
    sign = ", with the other sign" if (predicted < 0) != (expected < 0) else ""
    return f"It is the expected answer times {number_text(10.0**power)}{sign}."


def _operations(program: Program) -> str:
    return ", ".join(expanded_operations(program)) or "none"


def _pairs(plan: Program | None, predicted: Answer, gold: Program) -> tuple[NumberPair, ...]:
    tree, wanted = normal_tree(plan), normal_tree(gold)
    if tree is None and is_number(predicted):
        tree = Literal(predicted)
    return () if tree is None or wanted is None else (aligned(tree, wanted) or ())[:_MOST_PAIRS]


def _misread(pair: NumberPair, page: Document) -> str:
    return f"{_placed(pair.plan, page)} instead of {_placed(pair.gold, page)}"


def _placed(literal: Literal, page: Document) -> str:
    names = list(dict.fromkeys(_named(literal, page)))
    return f"{number_text(literal.value)} ({' or '.join(names[:2])})" if names else number_text(literal.value)


def _named(literal: Literal, page: Document) -> Iterator[str]:
    """Yields line item and period of a number in the table."""
    for place in page.places_of(literal):
        if place.cell is not None:
            row, column = page.table[place.cell[0]], page.table[0]
            period = cell_text(column[place.cell[1]]) if place.cell[1] < len(column) else ""
            yield ", ".join(part for part in (cell_text(row[0]), period) if part)


def answer_text(answer: Answer) -> str:
    """Returns an answer for display."""
    return "no answer" if answer is None else answer if isinstance(answer, str) else number_text(answer)
