"""Tests run in a process that never ran the model's code: what they can use of it, and that nobody forges a pass."""

import asyncio
import json
from collections.abc import Iterator, Mapping

import pandas as pd
import pytest

from eval_pipeline.sandbox import Assertions, BlockingSandbox, Limits, Outcome, PythonSandbox, SnippetFailed, SnippetRan
from eval_pipeline.sandbox.tiers import TIERS, UNSAFE_TIER, Tier
from eval_pipeline_tests.outside import PANDAS, given
from eval_pipeline_tests.sandbox.forging_attacks import FORGING, HONEST, REFERENCE, TESTS

LIMITS = Limits(wall_s=4.0, memory_bytes=512 << 20)
TABLES = {"df": pd.DataFrame({"k": ["a", "b", "a"], "v": [1, 2, 5]})}


async def judged(tier: Tier, codes: Mapping[str, str], limits: Limits = LIMITS) -> dict[str, Outcome]:
    async with PythonSandbox(limits, zygotes=2, tiers=[tier]) as box:
        ran = [box.run(code, TABLES, tests=Assertions(TESTS, REFERENCE)) for code in codes.values()]
        return dict(zip(codes, await asyncio.gather(*ran), strict=True))


@pytest.mark.parametrize("title", list({tier.name: tier.title for tier in reversed(TIERS)}.values()))
def test_no_code_forges_a_pass_and_right_code_passes(title: str) -> None:
    (tier,) = [tier for tier in TIERS if tier.title == title]
    if why_not := tier.why_not():
        pytest.skip(why_not)
    outcomes = asyncio.run(judged(tier, {**FORGING, **HONEST}))
    assert len(FORGING) >= 25
    assert {
        name: outcome for name, outcome in outcomes.items() if isinstance(outcome, SnippetRan)
    }.keys() == HONEST.keys()


def test_the_same_code_forges_where_tests_follow_it_in_one_process() -> None:
    """So the attacks are real."""
    names = ("result written to the pipe", "equal to everything", "a frame that is equal to everything")

    async def one_process() -> list[Outcome]:
        async with PythonSandbox(LIMITS, zygotes=1, tiers=[UNSAFE_TIER]) as box:
            tests = "assert total(df).equals(pd.DataFrame())\nresult = True"
            return [await box.run(f"{FORGING[name]}\n{tests}", TABLES) for name in names]

    assert all(isinstance(outcome, SnippetRan) for outcome in asyncio.run(one_process()))


@pytest.fixture(scope="module")
def box() -> Iterator[BlockingSandbox]:
    with BlockingSandbox(LIMITS, zygotes=1) as found:
        yield found


FRAME = "pd.DataFrame({'c': pd.Categorical(['u', 'v']), 't': pd.to_datetime(['2020', None])}, index=['x', 'y'])"
USES = {
    "functions": ("def f(x, *, y=1): return x + y", "assert f(1) == 2 and f(1, y=4) == 5", ""),
    "functions of functions": ("def f(n): return lambda x: x + n", "assert f(2)(3) == 5", ""),
    "plain values": ("found = {'a': [1, (2, None)], 3: {4.5}}", "assert found == {'a': [1, (2, None)], 3: {4.5}}", ""),
    "frames with their dtypes": (
        f"f = lambda: {FRAME}",
        f"pd.testing.assert_frame_equal(f(), {FRAME})",
        "",
    ),
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
    "unittest": (
        "def f(x): return x + 1",
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(f(1), 2)\n"
        "ran = unittest.TestResult()\nunittest.defaultTestLoader.loadTestsFromTestCase(T).run(ran)\n"
        "assert ran.testsRun == 1 and ran.wasSuccessful()",
        "",
    ),
}


@pytest.mark.parametrize("name", USES)
def test_tests_can_use(name: str, box: BlockingSandbox) -> None:
    code, tests, reference = USES[name]
    outcome = box.run(code, TABLES, tests=Assertions(tests, reference))
    assert isinstance(outcome, SnippetRan), outcome
    assert outcome.result == {"kind": "value", "value": True}


def test_what_went_wrong_is_told_with_the_line_of_the_tests(box: BlockingSandbox) -> None:
    failed = box.run("def f(x): return x", tests=Assertions("assert f(1) == 1\nassert f(2) == 3, 'f(2) is not 3'", ""))
    assert isinstance(failed, SnippetFailed)
    assert (failed.exception, failed.message, failed.line) == ("AssertionError", "f(2) is not 3", 2)
    broken = box.run("def f(x): return x\n1 / 0", tests=Assertions("assert f(1) == 1", ""))
    assert isinstance(broken, SnippetFailed)
    assert (broken.exception, broken.line) == ("ZeroDivisionError", 2)
    lacking = box.run("g = 1", tests=Assertions("assert f(1) == 1", ""))
    assert isinstance(lacking, SnippetFailed)
    assert lacking.exception == "NameError"
    odd = box.run("f = lambda: object()", tests=Assertions("assert f()", ""))
    assert isinstance(odd, SnippetFailed)
    assert odd.message == "a value of type object has no plain form, so that tests cannot look at it"


@pytest.mark.soak
def test_solutions_of_pandaseval_are_judged_as_in_one_process(box: BlockingSandbox) -> None:
    file = given(PANDAS / "pandaseval" / "PandasEval_sample.jsonl")
    differing = {}
    for task in map(json.loads, file.read_text().splitlines()):
        called = "" if task["entry_point"] == "none" else task["entry_point"]
        code, tests = task["prompt"] + task["canonical_solution"][0], f"{task['test']}\ncheck({called})"
        outside, inside = box.run(code, tests=Assertions(tests, code)), box.run(f"{code}\n{tests}\nresult = True")
        if type(outside) is not type(inside):
            differing[task["task_id"]] = (outside, inside)
    assert differing == {}
