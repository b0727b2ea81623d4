"""Tests run in a process that never ran the model's code: what they can use of it, and that nobody forges a pass."""

import json

import pandas as pd
import pytest

from eval_pipeline.sandbox.python_sandbox import Assertions
from eval_pipeline.sandbox.returned.outcomes import SnippetFailed, SnippetRan
from eval_pipeline_tests.outside import PANDAS, given
from eval_pipeline_tests.sandbox.campaign import JAILS
from eval_pipeline_tests.sandbox.conftest import Boxes
from eval_pipeline_tests.sandbox.forging_attacks import FORGING, HONEST, REFERENCE, TESTS

TABLES = {"df": pd.DataFrame({"k": ["a", "b", "a"], "v": [1, 2, 5]})}


@pytest.mark.parametrize("title", JAILS)
def test_no_code_forges_a_pass_and_right_code_passes(title: str, boxes: Boxes) -> None:
    codes = {**FORGING, **HONEST}
    outcomes = boxes.run(*codes.values(), title=title, tables=TABLES, tests=Assertions(TESTS, REFERENCE))
    assert len(FORGING) >= 25
    assert [name for name, one in zip(codes, outcomes, strict=True) if isinstance(one, SnippetRan)] == [*HONEST]


def test_the_same_code_forges_where_tests_follow_it_in_one_process(boxes: Boxes) -> None:
    """So the attacks are real."""
    names = ("result written to the pipe", "equal to everything", "a frame that is equal to everything")
    tests = "assert total(df).equals(pd.DataFrame())\nresult = True"
    outcomes = boxes.run(*(f"{FORGING[name]}\n{tests}" for name in names), title="unsafe", tables=TABLES)
    assert all(isinstance(outcome, SnippetRan) for outcome in outcomes)


FRAME = "pd.DataFrame({'c': pd.Categorical(['u', 'v']), 't': pd.to_datetime(['2020', None])}, index=['x', 'y'])"
USES = {
    "functions": ("def f(x, *, y=1): return x + y", "assert f(1) == 2 and f(1, y=4) == 5", ""),
    "functions of functions": ("def f(n): return lambda x: x + n", "assert f(2)(3) == 5", ""),
    "plain values": ("found = {'a': [1, (2, None)], 3: {4.5}}", "assert found == {'a': [1, (2, None)], 3: {4.5}}", ""),
    "frames with their dtypes": (f"f = lambda: {FRAME}", f"pd.testing.assert_frame_equal(f(), {FRAME})", ""),
    "a list changed in place": ("def f(items): items.append(1)", "items = [0]\nf(items)\nassert items == [0, 1]", ""),
    "a frame changed in place": (
        "def f(frame): frame['b'] = 1",
        "frame = pd.DataFrame({'a': [1]})\nf(frame)\nassert list(frame.columns) == ['a', 'b']",
        "",
    ),
    "an array changed in place": (
        "def f(array): array[0] = 7",
        "array = np.array([1, 2])\nf(array)\nassert array.tolist() == [7, 2]",
        "",
    ),
    "exceptions by their type": (
        "def f(): raise KeyError('x')",
        "try:\n    f()\nexcept KeyError:\n    pass\nelse:\n    raise AssertionError",
        "",
    ),
    "iterators": ("def f():\n    yield 1\n    yield 2", "assert list(f()) == [1, 2]\nassert next(f()) == 1", ""),
    "classes of the reference": (
        "class Sum:\n    def __init__(self): self.n = 0\n    def add(self, x): self.n += x",
        "s = Sum()\ns.add(2)\ns.add(3)\nassert s.n == 5",
        "class Sum: ...",
    ),
    "named tuples": (
        "from collections import namedtuple\nf = lambda: namedtuple('P', 'x y')(1, 2)",
        "assert f().x == 1 and f() == (1, 2)",
        "",
    ),
    "imports of the reference": ("f = np.sqrt", "assert math.isclose(f(4), 2)", "import math"),
    "tables as they were given": ("df['v'] = 0", "assert df['v'].sum() == 8", ""),
    "tables as the code left them": ("df['v'] = 0", "assert from_code('df')['v'].sum() == 0", ""),
    "files": ("def f(path): open(path, 'w').write('x')", "f('made')\nassert open('made').read() == 'x'", ""),
    "parts of figures by their place": (
        "import matplotlib.pyplot as plt\nax = plt.figure().subplots()\nax.plot([1, 2], label='a')\nax.bar([1], [2])",
        "assert len(ax.patches) == 1 and len(ax.get_lines()) == 1 and list(ax.patches)[0].get_height() == 2\n"
        "assert ax.get_lines()[0].get_label() == 'a' and ax.patches[-1].get_width() > 0 and len(ax.patches[:1])\n"
        "assert [*ax.containers[0]][0].get_height() == 2 and ax.texts[:] == []",
        "",
    ),
    "unittest": (
        "def f(x): return x + 1",
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(f(1), 2)\n"
        "ran = unittest.TestResult()\nunittest.defaultTestLoader.loadTestsFromTestCase(T).run(ran)\n"
        "assert ran.testsRun == 1 and ran.wasSuccessful()",
        "",
    ),
}


@pytest.mark.parametrize("name", USES)
def test_tests_can_use(name: str, boxes: Boxes) -> None:
    code, tests, reference = USES[name]
    (outcome,) = boxes.run(code, tables=TABLES, tests=Assertions(tests, reference))
    assert isinstance(outcome, SnippetRan), outcome
    assert outcome.result == {"kind": "value", "value": True}


@pytest.mark.parametrize(
    ("code", "tests", "told"),
    [
        (
            "def f(x): return x",
            "assert f(1) == 1\nassert f(2) == 3, 'f(2) is not 3'",
            ("AssertionError", "f(2) is not 3", 2),
        ),
        ("def f(x): return x\n1 / 0", "assert f(1) == 1", ("ZeroDivisionError", "division by zero", 2)),
        ("g = 1", "assert f(1) == 1", ("NameError", "name 'f' is not defined", 1)),
    ],
)
def test_what_went_wrong_is_told_with_the_line_of_the_tests(
    code: str, tests: str, told: tuple[str, str, int], boxes: Boxes
) -> None:
    (failed,) = boxes.run(code, tests=Assertions(tests, ""))
    assert isinstance(failed, SnippetFailed) and (failed.exception, failed.message, failed.line) == told


def test_a_value_without_a_plain_form_cannot_be_looked_at(boxes: Boxes) -> None:
    (odd,) = boxes.run("f = lambda: object()", tests=Assertions("assert f()", ""))
    assert isinstance(odd, SnippetFailed) and "type object has no plain form" in odd.message


@pytest.mark.soak
def test_solutions_of_pandaseval_are_judged_as_in_one_process(boxes: Boxes) -> None:
    file = given(PANDAS / "pandaseval" / "PandasEval_sample.jsonl")
    differing = {}
    for task in map(json.loads, file.read_text().splitlines()):
        called = "" if task["entry_point"] == "none" else task["entry_point"]
        code, tests = task["prompt"] + task["canonical_solution"][0], f"{task['test']}\ncheck({called})"
        (outside,), (inside,) = (
            boxes.run(code, tests=Assertions(tests, code)),
            boxes.run(f"{code}\n{tests}\nresult = 1"),
        )
        if type(outside) is not type(inside):
            differing[task["task_id"]] = (outside, inside)
    assert differing == {}
