"""What a conversation itself says of an answer on which models agree against the gold (docs/gold.md).

The factors are set by judgement: what has hardly another cause than a wrong gold weighs most.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod

from eval_pipeline.core.model import Json
from eval_pipeline.core.numbers import number_text
from eval_pipeline.tracks.capabilities import Weight
from eval_pipeline_plugins.tracks.finqa.cases.asked import prefers
from eval_pipeline_plugins.tracks.finqa.cases.document import FinqaCase, FinqaGold, FinqaTurn
from eval_pipeline_plugins.tracks.finqa.conversation import EarlierTurn
from eval_pipeline_plugins.tracks.finqa.mistakes.faults import (
    is_power_of_ten_off,
    normal_tree,
    swapped_tree,
    whole_tree,
)
from eval_pipeline_plugins.tracks.finqa.mistakes.inheriting import inherits
from eval_pipeline_plugins.tracks.finqa.mistakes.slips import nearest_tree
from eval_pipeline_plugins.tracks.finqa.programs.expression import Operation, places, value_of
from eval_pipeline_plugins.tracks.finqa.programs.matching import is_number, within_relative
from eval_pipeline_plugins.tracks.finqa.programs.program import Literal

_PRINTED, _USED, _UNFOUND, _UNIT, _UNUSED, _SIGN, _FOLLOWS = 100.0, 20.0, 5.0, 0.3, 0.2, 0.2, 0.1
_SLIP = {1: 10.0, 0: 3.0, -1: 0.5}
_SLIPPED = "the gold with one number or operation exchanged gives it"
_SAID = {
    1: f"{_SLIPPED}, which the question rather asks for",
    0: _SLIPPED,
    -1: f"{_SLIPPED}, but the question rather asks for the gold",
}
_SAME = 1e-4
_UNIT_NAMED = re.compile(r"illion|thousand|hundred|dollar|percent|portion|times|divided|\bover\b|10+\b", re.IGNORECASE)
_EITHER_SIGN = re.compile(r"\b(?:decline|decrease|reduction|loss|difference)", re.IGNORECASE)


def weights(case: FinqaCase, agreed: Mapping[str, Json]) -> dict[str, Weight]:
    """See `Audits.weights`.

    Args:
        case: the conversation.
        agreed: turn id → result on which models agree against the gold.
    """
    found: dict[str, Weight] = {}
    earlier: list[EarlierTurn] = []
    for turn in case.turns:
        answer = agreed.get(turn.id, {}).get("value")
        if is_number(answer) and is_number(turn.gold.expected):
            found[turn.id] = _weight(case, turn, float(answer), turn.gold.expected, earlier)
            gold = turn.gold
            earlier.append(EarlierTurn(turn.index, float(answer), None, gold.program, gold.expected, False))
    return found


def _weight(case: FinqaCase, turn: FinqaTurn, answer: float, expected: float, earlier: Sequence[EarlierTurn]) -> Weight:
    gold = turn.gold
    if _is_printed(answer, gold) and not _is_printed(expected, gold):
        return Weight(_PRINTED, f"the printed answer is {gold.printed}, too")
    if inherits(answer, None, earlier, expected, gold.program, case.context):
        return Weight(_FOLLOWS, "it follows from what they say of an earlier turn")
    if _is_used(case, turn, answer, True) and not _is_used(case, turn, expected, True):
        return Weight(_USED, "the golds of other turns calculate with it, and not with this gold")
    if any(within_relative(answer, expected * unit) for unit in (100.0, 0.01)):
        return Weight(1.0, "only percent and fraction differ", of_printing=True)
    found = [*_further(case, turn, answer, expected)]
    return Weight(prod(factor for factor, _ in found), ", and ".join(words for _, words in found))


def _further(case: FinqaCase, turn: FinqaTurn, answer: float, expected: float) -> Iterator[tuple[float, str]]:
    is_used = _is_used(case, turn, expected, False) and not _is_used(case, turn, answer, False)
    if is_used and not _repeats(case, turn, expected):
        yield _UNUSED, "the golds of other turns use this one"
    if (unfound := _unfound(case, turn)) is not None:
        yield _UNFOUND, f"the gold calculates with {number_text(unfound)}, which is nowhere on the page"
    differs_in_sign = within_relative(-answer, expected)
    if differs_in_sign and _EITHER_SIGN.search(turn.question):
        yield _SIGN, "only the sign differs, and the question asks for a decline or a difference"
    elif is_power_of_ten_off(answer, expected):
        if _scales_unasked(turn):
            yield _SLIP[0], "the gold is multiplied or divided by a power of ten, and the question names no unit"
        else:
            yield _UNIT, "only a power of ten differs"
    elif (preferred := _preferred(case, turn, answer)) is not None:
        yield _SLIP[preferred], _SAID[preferred]
    elif differs_in_sign:
        yield _SLIP[0], "only the sign differs"


def _unfound(case: FinqaCase, turn: FinqaTurn) -> float | None:
    """Returns a number of the gold program that neither the page nor an earlier answer has; None if there is none."""
    earlier = [one.gold.expected for one in case.turns[: turn.index] if is_number(one.gold.expected)]
    unfound = (number for number in turn.gold.literals if not case.context.shows(number))
    return next((number for number in unfound if not any(within_relative(number, one) for one in earlier)), None)


def _repeats(case: FinqaCase, turn: FinqaTurn, expected: float) -> bool:
    """Whether a computed gold is the answer of another turn, as which others use it."""
    others = [other.gold.expected for other in case.turns if other is not turn]
    is_answer = any(is_number(other) and within_relative(other, expected) for other in others)
    return is_answer and isinstance(whole_tree(turn.gold.program), Operation)


def _scales_unasked(turn: FinqaTurn) -> bool:
    """Whether a gold ends with a power of ten that its question does not ask for."""
    return whole_tree(turn.gold.program) != normal_tree(turn.gold.program) and not _UNIT_NAMED.search(turn.question)


def _preferred(case: FinqaCase, turn: FinqaTurn, answer: float) -> int | None:
    """Returns what `prefers` says of the gold with a slip that gives an answer and of the gold; None without one."""
    whole, tree = whole_tree(turn.gold.program), normal_tree(turn.gold.program)
    if whole is None or tree is None:
        return None
    questions = [other.question for other in case.turns[: turn.index + 1]]
    if (swapped := swapped_tree(answer, tree, case.context)) is not None:
        return prefers(swapped, tree, questions, case.context)
    near = nearest_tree(answer, whole, case.context)
    return None if near is None else prefers(near, whole, questions, case.context)


def _is_printed(number: float, gold: FinqaGold) -> bool:
    """Whether a number is the printed answer, in percent or not."""
    if gold.printed_number is None:
        return False
    printed = gold.printed_number.value
    return any(within_relative(number * unit, printed) for unit in (1.0, 100.0, 0.01))


def _is_used(case: FinqaCase, turn: FinqaTurn, number: float, only_here: bool) -> bool:
    """Whether golds of other turns calculate with a number, as an operand (of any sign) or as a result on the way.

    Args:
        case: the conversation.
        turn: the turn that is left out.
        number: an answer to it.
        only_here: numbers that another turn looks up do not count, since they need not be those of this turn.
    """
    trees = [tree for other in case.turns if other is not turn for tree in [normal_tree(other.gold.program)] if tree]
    looked_up = {tree.value for tree in trees if isinstance(tree, Literal)}
    for node in (node for tree in trees for at, node in places(tree) if at or not only_here):
        value = value_of(node, case.context.table) if isinstance(node, Operation | Literal) else None
        if not is_number(value) or (only_here and isinstance(node, Literal) and value in looked_up):
            continue
        if abs(value - number) <= _SAME * abs(number) or (isinstance(node, Literal) and value == -number):
            return True
    return False
