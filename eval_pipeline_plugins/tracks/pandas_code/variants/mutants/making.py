"""Makes the mutants of a piece of code."""

import ast
from collections.abc import Iterable, Iterator
from itertools import chain

from eval_pipeline_plugins.tracks.pandas_code.variants.mutants.calls import call_changes
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants.conditions import condition_changes
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants.mutant import CodeChange, Known, Mutant, pretty
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants.values import value_changes
from eval_pipeline_plugins.tracks.pandas_code.variants.names import assignments


def mutants_of(code: str, known: Known) -> list[Mutant]:
    """Returns the mutants of code that parses, each different text once.

    Args:
        code: reference code.
        known: columns and texts of its tables.
    """
    tree = ast.parse(code)
    return made(tree, _changes(tree, known))


def made(tree: ast.Module, changes: Iterable[CodeChange]) -> list[Mutant]:
    """Returns the mutants that changes of nodes of a syntax tree make, each different text once."""
    places = {id(node): number for number, node in enumerate(ast.walk(tree))}
    holders = {id(child): holder for child, holder in _held(tree)}
    seen = {ast.unparse(tree)}
    found = []
    for change in changes:
        changed = _replaced(tree, change, *holders[id(change.place)])
        if changed is not None and changed not in seen:
            seen.add(changed)
            requirement = f"{pretty(change.piece)} #{places.get(id(change.piece), 0)}"
            found.append(Mutant(change.kind, requirement, change.dropped, change.words, changed))
    return found


def _held(tree: ast.AST) -> Iterator[tuple[ast.AST, tuple[ast.AST, str, int | None]]]:
    """Yields the nodes in a tree, each with the node that holds it, the field, and its place where that is a list."""
    for node in ast.walk(tree):
        for field, held in ast.iter_fields(node):
            for place, child in enumerate(held) if isinstance(held, list) else [(None, held)]:
                if isinstance(child, ast.AST):
                    yield child, (node, field, place)


def _changes(tree: ast.Module, known: Known) -> Iterator[CodeChange]:
    assigned = assignments(tree)
    written = frozenset(
        part.value for part in ast.walk(tree) if isinstance(part, ast.Constant) and isinstance(part.value, str)
    )
    for node in ast.walk(tree):
        yield from chain(
            condition_changes(node, known, assigned), call_changes(node, known), value_changes(node, known, written)
        )


def _replaced(tree: ast.Module, change: CodeChange, holder: ast.AST, field: str, place: int | None) -> str | None:
    """Returns the code of a tree with a change, which is taken back; None if the code cannot be written."""
    by = ast.fix_missing_locations(change.by)
    _put(holder, field, place, by)
    try:
        return ast.unparse(tree)
    except (AttributeError, ValueError, TypeError):
        return None
    finally:
        _put(holder, field, place, change.place)


def _put(holder: ast.AST, field: str, place: int | None, node: ast.AST) -> None:
    if place is None:
        setattr(holder, field, node)
    else:
        getattr(holder, field)[place] = node
