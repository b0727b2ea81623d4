"""Makes the mutants of a piece of code."""

import ast
import copy
from collections.abc import Iterable, Iterator
from itertools import chain

from eval_pipeline.variants.hints import assignments
from eval_pipeline.variants.mutants.calls import call_changes
from eval_pipeline.variants.mutants.conditions import condition_changes
from eval_pipeline.variants.mutants.mutant import Change, Known, Mutant, pretty
from eval_pipeline.variants.mutants.values import value_changes


def mutants_of(code: str, known: Known) -> list[Mutant]:
    """Returns the mutants of code that parses, each different text once.

    Args:
        code: reference code.
        known: columns and texts of its tables.
    """
    tree = ast.parse(code)
    return made(tree, _changes(tree, known))


def made(tree: ast.Module, changes: Iterable[Change]) -> list[Mutant]:
    """Returns the mutants that changes of nodes of a syntax tree make, each different text once."""
    places = {id(node): number for number, node in enumerate(ast.walk(tree))}
    seen = {ast.unparse(tree)}
    found = []
    for change in changes:
        changed = _replaced(tree, places[id(change.place)], change.by)
        if changed is not None and changed not in seen:
            seen.add(changed)
            requirement = f"{pretty(change.piece)} #{places.get(id(change.piece), 0)}"
            found.append(Mutant(change.kind, requirement, change.dropped, change.words, changed))
    return found


def _changes(tree: ast.Module, known: Known) -> Iterator[Change]:
    assigned = assignments(tree)
    written = frozenset(
        part.value for part in ast.walk(tree) if isinstance(part, ast.Constant) and isinstance(part.value, str)
    )
    for node in ast.walk(tree):
        yield from chain(
            condition_changes(node, known, assigned), call_changes(node, known), value_changes(node, known, written)
        )


def _replaced(tree: ast.Module, number: int, by: ast.AST) -> str | None:
    """Returns the code with a node (by its number in `ast.walk`) replaced; None if the code cannot be written."""
    changed = copy.deepcopy(tree)
    target = next(node for place, node in enumerate(ast.walk(changed)) if place == number)
    swapped = _Swap(target, copy.deepcopy(by)).visit(changed)
    try:
        return ast.unparse(ast.fix_missing_locations(swapped))
    except (AttributeError, ValueError, TypeError):
        return None


class _Swap(ast.NodeTransformer):
    def __init__(self, target: ast.AST, by: ast.AST) -> None:
        self._target, self._by = target, by

    def visit(self, node: ast.AST) -> ast.AST:
        return self._by if node is self._target else self.generic_visit(node)
