"""Properties: layout, comments and docstrings never count; every number in what is reached does."""

import ast
import random
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline_tests.fingerprints.packages import of

LEAF = st.one_of(st.integers(0, 99).map(str), st.sampled_from(["x", "y", "LIMIT", "'text'", "None", "helper(x)"]))
EXPRESSION = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "<", "and", "or"]), inner).map(lambda p: f"({' '.join(p)})"),
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} if {p[1]} else {p[2]})"),
        inner.map(lambda one: f"[z for z in ({one},)]"),
        inner.map(lambda one: f"f'a{{{one}!r}}'" if "'" not in one else one),
        inner.map(lambda one: f"(lambda v={one}: v)"),
    ),
    max_leaves=6,
)
STATEMENT = st.one_of(
    EXPRESSION.map(lambda one: f"    y = {one}"),
    EXPRESSION.map(lambda one: f"    if {one}:\n        return {one}"),
    EXPRESSION.map(lambda one: f"    for y in [{one}]:\n        helper(y)"),
    EXPRESSION.map(lambda one: f"    try:\n        return {one}\n    finally:\n        y = x"),
    EXPRESSION.map(lambda one: f"    kind = Kind({one})\n    y = kind.value"),
)
SOURCE = st.lists(STATEMENT, min_size=1, max_size=4).map(
    lambda body: "\n".join(
        [
            "LIMIT = 7",
            "class Kind:\n    base = 5\n    def __init__(self, given):\n        self.given = given",
            "    @property\n    def value(self):\n        return self.given, self.base, 3",
            "def helper(v, w=8):\n    return v + w",
            "def f(x, y=0):",
            *body,
            "    return helper(y), LIMIT, Kind",
        ]
    )
)


def _digest(source: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return of(Path(folder), {"a": source})


def _with_other_layout(source: str, rng: random.Random) -> str:
    """The same program as `ast.unparse` writes it, with docstrings, comments and empty lines put in."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and rng.random() < 0.7:
            node.body.insert(0, ast.Expr(ast.Constant(f"Docstring {rng.random()}.")))
    lines = []
    for line in ast.unparse(ast.fix_missing_locations(tree)).splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        lines += [f"{indent}# {rng.random()}", ""] if rng.random() < 0.4 else []
        lines.append(line + ("  # noted" if rng.random() < 0.4 else "   "))
    rng.random()
    return "\n".join(lines) + "\n"


@given(SOURCE, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_layout_comments_and_docstrings_never_count(source: str, rng: random.Random) -> None:
    assert _digest(source) == _digest(_with_other_layout(source, rng))


@given(SOURCE, st.data())
@settings(max_examples=60, deadline=None)
def test_every_number_counts(source: str, data: st.DataObject) -> None:
    tree = ast.parse(source)
    numbers = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, int)]
    changed = data.draw(st.sampled_from(numbers))
    changed.value += data.draw(st.integers(1, 10**30))
    assert _digest(source) != _digest(ast.unparse(tree))


@given(st.permutations(range(4)))
@settings(max_examples=24, deadline=None)
def test_order_of_definitions_never_counts(order: list[int]) -> None:
    parts = ["LIMIT = 7", "def g():\n    return LIMIT", "def f():\n    return g(), K()", "class K:\n    x = 1"]
    assert _digest("\n".join(parts)) == _digest("\n".join(parts[place] for place in order))
