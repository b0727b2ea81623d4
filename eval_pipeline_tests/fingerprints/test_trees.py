"""What of a definition's source counts."""

import ast

import pytest

from eval_pipeline.fingerprints.parsed.trees import digest
from eval_pipeline_tests.fingerprints.packages import Change

F = '''
LIMIT = 3

def f(x, y=2):
    """Says something."""
    return x * y + LIMIT
'''


@pytest.mark.parametrize(
    "after",
    [
        F.replace("Says something.", "Says something else."),
        F.replace('    """Says something."""\n', ""),
        F.replace("LIMIT = 3", "LIMIT = 3  # of something\n'''An attribute's docstring.'''"),
        F.replace("return x * y + LIMIT", "return (\n        x * y\n        + LIMIT\n    )"),
        F.replace("x, y=2", "x: int, y: 'float' = 2"),
        F.replace("y=2):", "y=2) -> int:"),
        F.replace("LIMIT = 3", "LIMIT: int = 3"),
        F.replace("LIMIT = 3", "LIMIT = 0x3"),
        F.replace("    return", "    pass\n    ...\n    return"),
        F.replace("    return", "    z: int\n    return"),
        F.replace("    return", "    if TYPE_CHECKING:\n        from decimal import Decimal\n    return"),
        F.replace("LIMIT = 3", "if TYPE_CHECKING:\n    LIMIT = 4\nelse:\n    LIMIT = 3"),
        "def other():\n    return 1\n" + F + "\nclass Further: ...\nMORE = 1\n",
        "def f(x, y=2):\n    return x * y + LIMIT\nLIMIT = 3\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from decimal import Decimal\n" + F,
        "import math\nfrom os import path\n" + F,
        F + "\nif __name__ == '__main__':\n    print(f(1))\n",
    ],
)
def test_what_does_not_count(change: Change, after: str) -> None:
    assert after != F
    assert not change.matters(F, after)


@pytest.mark.parametrize(
    "after",
    [
        F.replace("3", "4"),
        F.replace("y=2", "y=3"),
        F.replace("x * y", "x / y"),
        F.replace("x * y", "y * x"),
        F.replace("def f(x, y=2)", "def f(x, *, y=2)"),
        F.replace("def f", "@staticmethod\ndef f"),
        F.replace("def f", "async def f"),
        F.replace("LIMIT = 3", "LIMIT = 3.0"),
        F.replace("LIMIT = 3", "LIMIT = True"),
        F.replace("LIMIT = 3", "LIMIT = 3\nLIMIT += 1"),
        F.replace("    return", "    global LIMIT\n    return"),
    ],
)
def test_what_counts(change: Change, after: str) -> None:
    assert change.matters(F, after)


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", "True"), ("0.0", "-0.0"), ("None", "'None'"), ("'a'", "b'a'"), ("''", "()"), ("[None]", "[]"), ("1", "1j")],
)
def test_constants_that_look_alike_differ(change: Change, one: str, other: str) -> None:
    assert change.matters(f"f = {one}", f"f = {other}")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("'a' 'b'", "'ab'"),
        ("f'a{1}' 'b' f'c'", "f'a{1}bc'"),
        ("f'a' 'b'", "'ab'"),
        ("f'{1:}'", "f'{1}'"),
        ("1_000", "1000"),
        ('"x"', "'x'"),
        ("u'x'", "'x'"),
        ("(1, 2,)", "1, 2"),
    ],
)
def test_spellings_of_the_same(change: Change, one: str, other: str) -> None:
    assert not change.matters(f"f = {one}", f"f = {other}")


@pytest.mark.parametrize(("one", "other"), [("f'{1!r}'", "f'{1}'"), ("f'{1:3}'", "f'{1:4}'"), ("f'a{1}'", "f'b{1}'")])
def test_parts_of_f_strings_count(change: Change, one: str, other: str) -> None:
    assert change.matters(f"f = {one}", f"f = {other}")


def test_empty_parts_of_f_strings_do_not_count() -> None:
    """Some versions of Python leave them in the tree, others do not."""
    name = ast.FormattedValue(ast.Name("x", ast.Load()), -1, None)
    with_empty, without = ast.JoinedStr([ast.Constant(""), name, ast.Constant("")]), ast.JoinedStr([name])
    assert digest([with_empty]) == digest([without]) != digest([ast.JoinedStr([name, name])])


def test_annotations_in_inner_classes_count(change: Change) -> None:
    source = "def f():\n    class Inner:\n        x: int\n        y: str = 1\n    return Inner\n"
    assert change.matters(source, source.replace("x: int", "x: str"))
    assert change.matters(source, source.replace("y: str", "y: int"))


def test_annotations_in_classes_count(change: Change) -> None:
    source = "class f:\n    x: int = 1\n    def m(self, y: int) -> int:\n        z: int = y\n        return z\n"
    assert change.matters(source, source.replace("x: int", "x: str"))
    assert change.matters(source, source.replace("    x: int = 1\n", "    x: int = 1\n    w: int\n"))
    assert not change.matters(source, source.replace("y: int", "y: str").replace("-> int", "-> str"))
    assert not change.matters(source, source.replace("z: int", "z: str"))
