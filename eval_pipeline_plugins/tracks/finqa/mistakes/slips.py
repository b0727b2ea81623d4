"""Finds the slip against the gold calculation that gives an answer without a calculation (docs/finqa.md)."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice, product

from eval_pipeline.core.numbers import number_text
from eval_pipeline_plugins.tracks.finqa.cases.document import Document
from eval_pipeline_plugins.tracks.finqa.mistakes.guesses import MOST_CHANCE, chance, is_as_written
from eval_pipeline_plugins.tracks.finqa.programs.expression import Node, Operation, Place, places, replaced, value_of
from eval_pipeline_plugins.tracks.finqa.programs.matching import Answer, is_number
from eval_pipeline_plugins.tracks.finqa.programs.program import Constant, Literal

_SCALES = (0.001, 0.01, 0.1, 10.0, 100.0, 1000.0, 1e6)
_MAGNITUDES = (0.001, 1000.0, 1e6)
_OPERATIONS = ("add", "subtract", "multiply", "divide")
_COUNTS = (2.0, 3.0, 4.0, 5.0, 12.0)
"""Numbers by which sums are averaged: of two to five items, or of the months."""
_ONE = Constant("const_1", 1.0)
_FORMS = ((1.0, MOST_CHANCE), (-1.0, MOST_CHANCE / 4), (100.0, MOST_CHANCE / 4), (0.01, MOST_CHANCE / 4))
"""Factors of what a slip gives (none, the other sign, percent, fraction), and how likely chance may be to meet it."""
_MOST_MOVED = 64


def nearest_tree(answer: Answer, gold: Node, page: Document) -> Node | None:
    """Returns the calculation with one slip against the gold one that gives the answer; None if there is none.

    Simpler slips are tried first: another operation or a step left out; all numbers taken from another line item or
    period; one number of the same line item or period, or of another size; a further step; any number of the page.
    """
    if not is_number(answer):
        return None
    near, others = _with_other_number(gold, page)
    families = [
        [(tree, value) for tree in family for value in [value_of(tree, page.table)] if is_number(value)]
        for family in (_with_other_operation(gold), _moved(gold, page), near, _with_further_step(gold), others)
    ]
    for factor, most_chance in _FORMS:
        for family in families:
            found = next((tree for tree, value in family if is_as_written(answer, value * factor)), None)
            if found is not None and chance(answer, [value * factor for _, value in family]) <= most_chance:
                return found
    return None


def is_misspelt(answer: float, right: float) -> bool:
    """Whether an answer has the digits of the right number, but for their order or for one of them."""
    mine, theirs = (number_text(abs(number)).replace(".", "") for number in (answer, right))
    if len(mine) != len(theirs) or len(mine) < 2:
        return False
    return Counter(mine) == Counter(theirs) or sum(a != b for a, b in zip(mine, theirs, strict=True)) == 1


def _with_other_operation(gold: Node) -> Iterator[Node]:
    for at, node in places(gold):
        if isinstance(node, Operation):
            yield from (replaced(gold, at, part) for part in node.parts if not (at == () and part == gold))
            if node.name in _OPERATIONS and len(node.parts) == 2:
                for name in _OPERATIONS:
                    if name != node.name:
                        yield replaced(gold, at, Operation(name, node.parts))
                        yield replaced(gold, at, Operation(name, node.parts[::-1]))


def _with_further_step(gold: Node) -> Iterator[Node]:
    """Yields what comes of a further step: the rest of a share, a ratio to a number of the calculation, an average."""
    yield Operation("subtract", (_ONE, gold))
    yield Operation("add", (gold, _ONE))
    for count in _COUNTS:
        yield Operation("divide", (gold, Constant(f"const_{count:g}", count)))
    for _, leaf in places(gold):
        if isinstance(leaf, Literal) and leaf != gold:
            yield Operation("divide", (gold, leaf))


def _with_other_number(gold: Node, page: Document) -> tuple[list[Node], list[Node]]:
    """Returns the calculations with one other number: one near the right one, and any other of the page."""
    near: list[Node] = []
    others: list[Node] = []
    for at, leaf in places(gold):
        if isinstance(leaf, Literal):
            for size, is_near in _others(leaf, page):
                (near if is_near else others).extend(replaced(gold, at, Literal(sign * size)) for sign in (1.0, -1.0))
        if isinstance(leaf, Constant | Literal):
            scales = _SCALES if isinstance(leaf, Constant) else _MAGNITUDES
            near.extend(replaced(gold, at, Literal(leaf.value * scale)) for scale in scales)
    return near, others


def _others(literal: Literal, page: Document) -> Iterator[tuple[float, bool]]:
    """Yields the other sizes of the page, and whether they share line item or period with a number."""
    here = page.places_of(literal)
    for size, theirs in page.placed.items():
        if size != abs(literal.value):
            near = any(a.item == b.item or not a.is_of_another_period(b) for a in here for b in theirs)
            yield (size / 100 if literal.percent else size), near


def _moved(gold: Node, page: Document) -> Iterator[Node]:
    """Yields the calculations whose numbers all come from places as far from the right ones, in one row or column."""
    leaves = [(at, leaf) for at, leaf in places(gold) if isinstance(leaf, Literal)]
    steps: dict[Place, dict[Place, list[float]]] = {}
    for at, leaf in leaves:
        for place in page.places_of(leaf):
            for step, size in page.steps_from(place):
                steps.setdefault(step, {}).setdefault(at, []).append(size / 100 if leaf.percent else size)
    right = dict(leaves)
    for moved in steps.values():
        for sizes in islice(product(*moved.values()), _MOST_MOVED if len(moved) > 1 else 0):
            tree = gold
            for at, size in zip(moved, sizes, strict=True):
                tree = replaced(tree, at, Literal(-size if right[at].value < 0 else size))
            yield tree
