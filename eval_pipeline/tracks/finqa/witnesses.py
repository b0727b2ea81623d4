"""What a conversation itself says of an answer on which models agree against the gold (docs/gold.md).

The factors are set by judgement: what has hardly another cause than a wrong gold weighs most.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod

from eval_pipeline.core.model import Json
from eval_pipeline.tracks.capabilities import Weight
from eval_pipeline.tracks.finqa.conversation import EarlierTurn
from eval_pipeline.tracks.finqa.document import FinqaCase, FinqaGold, FinqaTurn
from eval_pipeline.tracks.finqa.expression import Operation, places, value_of
from eval_pipeline.tracks.finqa.faults import is_power_of_ten_off, is_swapped, normal_tree
from eval_pipeline.tracks.finqa.inheriting import inherits
from eval_pipeline.tracks.finqa.matching import is_number, within_relative
from eval_pipeline.tracks.finqa.program import Literal
from eval_pipeline.tracks.finqa.slips import nearest_tree

_PRINTED, _USED, _SLIP, _UNIT, _UNUSED, _SIGN, _FOLLOWS = 100.0, 20.0, 3.0, 0.3, 0.2, 0.2, 0.1
_SAME = 1e-4
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
    if _is_used(case, turn, expected, False) and not _is_used(case, turn, answer, False):
        yield _UNUSED, "the golds of other turns use this one"
    tree = normal_tree(turn.gold.program)
    if within_relative(-answer, expected):
        if _EITHER_SIGN.search(turn.question):
            yield _SIGN, "only the sign differs, and the question asks for a decline or a difference"
        else:
            yield _SLIP, "only the sign differs"
    elif is_power_of_ten_off(answer, expected):
        yield _UNIT, "only a power of ten differs"
    elif tree is not None and (
        nearest_tree(answer, tree, case.context) or is_swapped(answer, None, tree, case.context)
    ):
        yield _SLIP, "the gold with one number or operation exchanged gives it"


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
