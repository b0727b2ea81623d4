"""Diagnoses a wrong calculation by comparing it with the gold one and the page (docs/finqa.md)."""

from collections.abc import Iterable, Iterator, Sequence
from math import isclose, isfinite, log10

from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.finqa.cases.document import Document
from eval_pipeline_plugins.tracks.finqa.cases.number_places import NumberPlace
from eval_pipeline_plugins.tracks.finqa.mistakes.guesses import is_rounded
from eval_pipeline_plugins.tracks.finqa.mistakes.slips import is_misspelt, nearest_tree
from eval_pipeline_plugins.tracks.finqa.programs.expression import (
    Node,
    NoTreeError,
    Operation,
    number_of,
    numbers_of,
    operations_of,
    places,
    replaced,
    tree_of,
    value_of,
)
from eval_pipeline_plugins.tracks.finqa.programs.matching import (
    RELATIVE,
    Answer,
    answers_match,
    is_number,
    within_relative,
)
from eval_pipeline_plugins.tracks.finqa.programs.program import Literal, Program, expanded_operations

_NOISE = 1e-9
_EXACT = 0.001
_MOST_POWERS = 12
_POWERS_OF_TEN = frozenset(10.0**k for k in range(1, _MOST_POWERS + 1))
_ORDERED = frozenset({"subtract", "divide", "exp", "greater"})
_NO_OPERANDS = {1.0, 100.0}
"""Numbers that convert a growth or a share to another unit."""
_SCALING = frozenset({"multiply", "divide"})
_FOLDS = frozenset({"add", "multiply"})


@value
class NumberPair:
    """A number of the gold calculation and the model's number in its place."""

    gold: Literal
    plan: Literal


def is_scale_error(predicted: Answer, expected: float | str, plan: Program | None, gold: Program) -> bool:
    """Whether |p| is |e| times a power of ten other than 1.

    With the gold's operations a tolerance of 1% applies, with others 0.1%, since one in a hundred wrong numbers is
    within 1% of some power of ten by chance.
    """
    if not is_power_of_ten_off(predicted, expected):
        return False
    if plan is None or is_power_of_ten_off(predicted, expected, _EXACT):
        return True
    tree, wanted = normal_tree(plan), normal_tree(gold)
    return tree is not None and wanted is not None and operations_of(tree) == operations_of(wanted)


def is_power_of_ten_off(predicted: Answer, expected: float | str, relative: float = RELATIVE) -> bool:
    """Whether |p| is |e| times a power of ten other than 1, within a relative tolerance."""
    if not is_number(predicted) or not is_number(expected) or not predicted or not expected:
        return False
    if not isfinite(predicted):
        return False
    power = round(log10(abs(predicted)) - log10(abs(expected)))
    if power == 0 or abs(power) > _MOST_POWERS:
        return False
    return abs(abs(predicted) * 10.0**-power - abs(expected)) <= relative * abs(expected)


def normal_tree(program: Program | None) -> Node | None:
    """Returns the tree of a program without a final scaling; None if it has no tree."""
    tree = whole_tree(program)
    while isinstance(tree, Operation) and (inner := _scaled(tree)) is not None:
        tree = inner
    return tree


def whole_tree(program: Program | None) -> Node | None:
    """Returns the tree of a program; None if it has none."""
    try:
        return None if program is None else tree_of(program)
    except NoTreeError:
        return None


def _scaled(node: Operation) -> Node | None:
    """Returns the part that is multiplied or divided by a power of ten; None if there is no such scaling."""
    if node.name not in ("multiply", "divide") or len(node.parts) != 2:
        return None
    first, second = node.parts
    if number_of(second) in _POWERS_OF_TEN and isinstance(first, Operation):
        return first
    is_first = node.name == "multiply" and number_of(first) in _POWERS_OF_TEN
    return second if is_first and isinstance(second, Operation) else None


def is_swapped(predicted: Answer, plan: Node | None, gold: Node, document: Document) -> bool:
    """Whether the answer is that of the gold calculation with two operands swapped."""
    if plan is not None and not numbers_of(plan) <= numbers_of(gold) | _NO_OPERANDS:
        return False
    if plan is not None and any(aligned(plan, variant) == () for variant in _swapped(gold)):
        return True
    return swapped_tree(predicted, gold, document) is not None


def swapped_tree(predicted: Answer, gold: Node, document: Document) -> Node | None:
    """Returns the gold calculation with two operands swapped that gives the answer; None if there is none."""
    return next((variant for variant in _swapped(gold) if _gives(variant, predicted, document)), None)


def _gives(tree: Node, predicted: Answer, document: Document) -> bool:
    """Whether a calculation gives the answered number up to a power of ten; text answers do not count."""
    found = value_of(tree, document.table)
    if not is_number(found) or not is_number(predicted) or not found:
        return False
    return within_relative(predicted, found) or is_power_of_ten_off(predicted, found)


def _swapped(tree: Node) -> Iterator[Node]:
    """Yields the tree with one operation's operands swapped, or with a growth divided by its other number."""
    for place, node in places(tree):
        if not isinstance(node, Operation) or node.name not in _ORDERED or len(node.parts) != 2:
            continue
        first, second = node.parts
        yield replaced(tree, place, Operation(node.name, (second, first)))
        if node.name == "divide" and isinstance(first, Operation) and first.name == "subtract":
            for base in first.parts:
                yield replaced(tree, place, Operation("divide", (first, base)))
                yield replaced(tree, place, Operation("divide", (Operation("subtract", first.parts[::-1]), base)))


def aligned(plan: Node, gold: Node) -> tuple[NumberPair, ...] | None:
    """Returns the numbers in which two calculations of equal shape differ; None if their operations differ."""
    if isinstance(plan, Operation):
        if not isinstance(gold, Operation) or plan.name != gold.name or len(plan.parts) != len(gold.parts):
            return None
        straight = _joined(aligned(a, b) for a, b in zip(plan.parts, gold.parts, strict=True))
        if plan.name not in _FOLDS or straight == ():
            return straight
        crossed = _joined(aligned(a, b) for a, b in zip(plan.parts[::-1], gold.parts, strict=True))
        found = [pairs for pairs in (straight, crossed) if pairs is not None]
        return min(found, key=len, default=None)
    if isinstance(gold, Operation):
        return None
    mine, theirs = number_of(plan), number_of(gold)
    if mine is None or theirs is None:
        return () if plan == gold else None
    if isclose(abs(mine), abs(theirs), rel_tol=_NOISE):
        return ()
    return (NumberPair(_literal(gold, theirs), _literal(plan, mine)),)


def _literal(node: Node, number: float) -> Literal:
    return node if isinstance(node, Literal) else Literal(number)


def _joined(found: Iterable[tuple[NumberPair, ...] | None]) -> tuple[NumberPair, ...] | None:
    joined: tuple[NumberPair, ...] = ()
    for pairs in found:
        if pairs is None:
            return None
        joined += pairs
    return joined


def misread(pairs: Sequence[NumberPair], document: Document) -> str:
    """Returns `wrong_year`, `wrong_row` or `wrong_operands`, depending on where the wrong numbers are on the page."""
    kinds = {_misread(pair, document) for pair in pairs}
    return kinds.pop() if len(kinds) == 1 else "wrong_operands"


def _misread(pair: NumberPair, document: Document) -> str:
    kinds = {_moved(there, here) for there in document.places_of(pair.gold) for here in document.places_of(pair.plan)}
    return next((kind for kind in ("wrong_year", "wrong_row") if kind in kinds), "wrong_operands")


def _moved(there: NumberPlace, here: NumberPlace) -> str | None:
    """Returns how the place of a number differs from the right one."""
    if there == here:
        return None
    if there.item == here.item:  # columns that say the same thing twice are of two periods
        return "wrong_year"
    return None if there.is_of_another_period(here) else "wrong_row"


def calculation_fault(
    predicted: Answer, plan: Program | None, gold: Program, document: Document, guess: Program | None = None
) -> str:
    """Returns what is wrong with a calculation (with carried values replaced) that has no simpler explanation.

    Args:
        predicted: the answer.
        plan: the calculation; None if the answer shows none.
        gold: the right one.
        document: the page.
        guess: a calculation found for an answer that shows none.
    """
    if plan is not None and has_other_operations(expanded_operations(plan), expanded_operations(gold)):
        return "wrong_operations"
    wanted = normal_tree(gold)
    if wanted is None:
        return "other"
    tree = normal_tree(plan)
    if tree is None:
        return _bare_fault(predicted, gold, document, guess)
    pairs = aligned(tree, wanted)
    if pairs == ():
        return "other"
    if is_swapped(predicted, tree, wanted, document):
        return "swapped_operands"
    return _difference(tree, wanted, document)


def _bare_fault(predicted: Answer, gold: Program, document: Document, guess: Program | None) -> str:
    """Returns what is wrong with an answer that shows no calculation.

    The gold one is whole here, since an answer shows the unit that a calculation may leave open.
    """
    wanted, tree = whole_tree(gold), normal_tree(guess)
    if wanted is None or not is_number(predicted):
        return "other"
    if not isinstance(wanted, Operation):
        return _lookup_fault(predicted, wanted, document, tree)
    right = value_of(wanted, document.table)
    if is_number(right) and is_rounded(predicted, right):
        return "other"
    if any(is_swapped(predicted, None, one, document) for one in (wanted, normal_tree(gold)) if one is not None):
        return "swapped_operands"
    tree = nearest_tree(predicted, wanted, document) or tree
    return "other" if tree is None else _difference(tree, wanted, document)


def _lookup_fault(predicted: float, wanted: Node, document: Document, guess: Node | None) -> str:
    """Returns what is wrong with a number where the gold one is only looked up; one that the page lacks is computed."""
    right = number_of(wanted)
    is_read = document.prints(abs(predicted)) or (right is not None and is_misspelt(predicted, right))
    if is_read or (guess is None and document.has(predicted)):
        return _difference(Literal(predicted), wanted, document)
    return "wrong_operations"


def _difference(tree: Node, wanted: Node, document: Document) -> str:
    """Returns in what a calculation differs from the gold one: where its numbers stand, or the operations."""
    pairs = aligned(tree, wanted)
    if pairs:
        return misread(pairs, document)
    if operations_of(tree) != operations_of(wanted):
        return "wrong_operations"
    return "other" if pairs == () or numbers_of(tree) == numbers_of(wanted) else "wrong_operands"


def has_other_operations(plan: Sequence[str] | None, gold: Sequence[str]) -> bool:
    """Whether a plan has operations that the gold lacks, apart from scaling; their trees then differ in shape."""
    return plan is not None and not _SCALING.issuperset(set(plan).difference(gold))


def is_right(node: Node, expected: float | str, document: Document) -> bool:
    """Whether a calculation gives the expected answer."""
    return answers_match(value_of(node, document.table), expected)
