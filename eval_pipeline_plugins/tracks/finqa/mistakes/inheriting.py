"""Decides whether a turn is wrong only because an earlier one was."""

from collections.abc import Iterator, Mapping, Sequence
from math import isclose

from eval_pipeline_plugins.tracks.finqa.cases.document import Document
from eval_pipeline_plugins.tracks.finqa.conversation import EarlierTurn
from eval_pipeline_plugins.tracks.finqa.mistakes.carried import CarriedAnswer, resolve, sizes
from eval_pipeline_plugins.tracks.finqa.mistakes.faults import aligned, is_right, normal_tree, whole_tree
from eval_pipeline_plugins.tracks.finqa.mistakes.guesses import is_as_written
from eval_pipeline_plugins.tracks.finqa.programs.execute import Value
from eval_pipeline_plugins.tracks.finqa.programs.expression import Node, Operation, exchanged, value_of
from eval_pipeline_plugins.tracks.finqa.programs.matching import Answer, is_number
from eval_pipeline_plugins.tracks.finqa.programs.program import Literal, Program

_NEAR = 0.005
_EXACT = 1e-6
_SCALES = (1.0, 100.0)
_UNITS = (1.0, 100.0, 0.01)


def takes_up_wrong(predicted: Answer, plan: Program | None, earlier: Sequence[EarlierTurn]) -> bool:
    """Whether a calculation contains a wrong earlier answer or one of its numbers.

    A fast check that is usually False. What an answer without a calculation contains is not known.
    """
    wrong = [turn for turn in earlier if not turn.is_right]
    if not wrong:
        return False
    if plan is None:
        return is_number(predicted)
    written = sizes(plan)
    for turn in wrong:
        if turn.program is not None and not written.isdisjoint(sizes(turn.program)):
            return True
        whole = abs(turn.predicted) if is_number(turn.predicted) else 0.0
        if any(isclose(size, whole * scale, rel_tol=_NEAR) for size in written for scale in _SCALES):
            return True
    return False


def inherits(
    predicted: Answer,
    plan: Program | None,
    earlier: Sequence[EarlierTurn],
    expected: float | str,
    gold: Program,
    document: Document,
) -> bool:
    """Whether the calculation becomes right when wrong earlier answers in it are replaced by the right ones.

    An earlier answer may appear as a number, also with the other sign, as the same computation, or through its wrong
    numbers. An answer without a calculation inherits if the gold calculation with wrong answers in it gives it.
    """
    wrong = [turn for turn in earlier if not turn.is_right]
    tree = Literal(predicted) if plan is None and is_number(predicted) else whole_tree(plan)
    if tree is not None and any(is_right(mended, expected, document) for mended in _mended(tree, wrong, document)):
        return True
    wanted = whole_tree(gold)
    if plan is not None or wanted is None or not is_number(predicted):
        return False
    spoilt = _mended(wanted, wrong, document, spoil=True)
    values = [value for one in spoilt for value in [value_of(one, document.table)] if is_number(value)]
    return any(is_as_written(predicted, value * unit) for value in values for unit in _UNITS)


def without_inherited(
    plan: Program | None, earlier: Sequence[EarlierTurn], gold: Program, document: Document
) -> Program | None:
    """Returns a plan with carried values replaced: by the right calculation where the carried answer was wrong.

    What remains wrong in it is the turn's own fault.
    """
    if plan is None:
        return None
    answers = [
        CarriedAnswer(turn.predicted, program)
        for turn in reversed(earlier)
        for program in [turn.program if turn.is_right else turn.gold]
        if is_number(turn.predicted) and program is not None
    ]
    return resolve(plan, answers, gold, document.prints).program


def _mended(tree: Node, wrong: Sequence[EarlierTurn], document: Document, spoil: bool = False) -> Iterator[Node]:
    """Yields the tree with wrong answers corrected: those of all turns, then of one turn, then their numbers.

    With `spoil` right ones are replaced by wrong ones instead.
    """
    for turns in (wrong, *([turn] for turn in wrong if len(wrong) > 1)):
        for keeps_sign in (True, False):
            found = exchanged(tree, _Exchange(turns, document, spoil, keeps_sign).other_answer)
            if found != tree:
                yield found
    numbers = _right_numbers(wrong)
    if spoil:
        numbers = {right: mine for mine, right in numbers.items()}
    found = exchanged(tree, lambda node: _other_number(node, numbers))
    if found != tree:
        yield found


class _Exchange:
    """Replaces the wrong answers of some turns by the right ones, or the reverse (`spoil`).

    Where the number has the other sign, so has what replaces it (`keeps_sign`), or it is replaced as it is.
    """

    def __init__(self, turns: Sequence[EarlierTurn], document: Document, spoil: bool, keeps_sign: bool) -> None:
        both = [
            (turn.predicted, turn.expected)
            for turn in turns
            if is_number(turn.predicted) and is_number(turn.expected) and turn.predicted
        ]
        self._answers = [(right, mine) for mine, right in both if right] if spoil else both
        self._document, self._keeps_sign, self._spoil = document, keeps_sign, spoil

    def other_answer(self, node: Node) -> Node | None:
        if isinstance(node, Literal):
            return self._of_literal(node)
        if isinstance(node, Operation):
            return self._of_result(value_of(node, self._document.table))
        return None

    def _of_literal(self, literal: Literal) -> Node | None:
        near = _EXACT if self._document.prints(abs(literal.value)) else _NEAR
        for old, new in self._answers:
            for scale in _SCALES:
                if isclose(abs(literal.value), abs(old) * scale, rel_tol=near):
                    return self._signed(literal.value, old, new * scale)
        return None

    def _of_result(self, result: Value | None) -> Node | None:
        for old, new in self._answers:
            if is_number(result) and isclose(abs(result), abs(old), rel_tol=_EXACT):
                return self._signed(result, old, new)
        return None

    def _signed(self, found: float, old: float, new: float) -> Node:
        turned = (found < 0) != (old < 0)
        turns = turned if self._keeps_sign else self._spoil and not turned
        return Literal(-new if turns else new)


def _right_numbers(wrong: Sequence[EarlierTurn]) -> dict[float, float]:
    """Returns wrong number → right number, for wrong calculations with the right operations."""
    numbers: dict[float, float] = {}
    for turn in wrong:
        plan, gold = normal_tree(turn.program), normal_tree(turn.gold)
        if plan is not None and gold is not None:
            for pair in aligned(plan, gold) or ():
                numbers.setdefault(pair.plan.value, pair.gold.value)
    return numbers


def _other_number(node: Node, numbers: Mapping[float, float]) -> Node | None:
    if isinstance(node, Literal) and node.value in numbers:
        return Literal(numbers[node.value])
    return None
