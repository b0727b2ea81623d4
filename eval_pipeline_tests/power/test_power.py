"""Mutants behind switches: each changes what it says, none without its switch, and names outlast edits elsewhere."""

import ast
from typing import Any

import pytest

from eval_pipeline_tests.power.__main__ import Switches
from eval_pipeline_tests.power.changes import changes

SOURCE = """
LIMIT = 3

def told(numbers, most=LIMIT):
    found = []
    for number in numbers[1:]:
        if not number or number > 2 and number < 8:
            found.append(number * 2)
    state = {"n": len(numbers)}
    state["n"] = sum(found) if found else number
    state["n"] += 5
    return found, state, f"{most + 1}"
"""


def outcome(switched_on: int | None) -> object:
    tree = ast.parse(SOURCE)
    behind: dict[int, list[tuple[int, ast.expr | None]]] = {}
    for number, change in enumerate(changes(tree)):
        behind.setdefault(id(change.node), []).append((number, change.new))
    names: dict[str, Any] = {"_mutant": lambda number: number == switched_on}
    exec(compile(ast.fix_missing_locations(Switches(behind).visit(tree)), "told.py", "exec"), names)
    return names["told"]([4, 3, 0, 2, 9, 8, 7])


NAMES = [change.name for change in changes(ast.parse(SOURCE))]


def test_none_is_on_by_itself() -> None:
    assert outcome(None) == ([6, 0, 14], {"n": 25}, "4")


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_each_switch_changes_what_comes_out(number: int) -> None:
    assert outcome(number) != outcome(None)


def test_names_outlast_edits_elsewhere() -> None:
    edited = changes(ast.parse(f"def before(x):\n    return x + 1\n{SOURCE}"))
    assert {change.name for change in edited} >= set(NAMES)
