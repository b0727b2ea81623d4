"""Sixty problems of our own in each form of data set that is published as programs with tests."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

COUNT = 60
# Solution and what the tests compare it with, for a number `k`; they say the same in different words.
PANDAS = (
    ("df[df['a'] > {k}]", "df.query('a > {k}')"),
    ("df.assign(c=df['a'] * {k})", "df.assign(c=lambda f: f.a.mul({k}))"),
    ("df.sort_values(['b', 'a']).head({k})", "df.sort_values(['b', 'a']).iloc[:{k}]"),
    ("df.groupby('b', as_index=False)['a'].sum().head({k})", "df.groupby('b').agg(a=('a', 'sum')).reset_index()[:{k}]"),
    ("df['a'].shift({k}).to_frame()", "pd.DataFrame({{'a': [float('nan')] * min({k}, len(df)) + list(df.a[:-{k}])}})"),
    ("df.rename(columns={{'a': 'a{k}'}})", "df.set_axis(['a{k}', 'b'], axis=1)"),
)
NUMPY = (
    ("np.sort(x)[-{k}:]", "np.array(sorted(x.tolist())[-{k}:])"),
    ("np.clip(x, {k}, None)", "np.maximum(x, {k})"),
    ("np.roll(x, {k})", "np.concatenate([x[-{k}:], x[:-{k}]])"),
    ("x[x % {k} == 0]", "np.array([v for v in x.tolist() if v % {k} == 0])"),
    ("np.outer(x, np.arange({k}))", "x[:, None] * np.arange({k})"),
    ("np.where(x > {k}, x, -x)", "np.array([v if v > {k} else -v for v in x.tolist()])"),
)
BAD: Mapping[int, tuple[str, str]] = {
    5: ("not python (", "is not Python"),
    17: ("GIVEN.no_such_method()", "has no attribute 'no_such_method'"),
    42: ("GIVEN[:0]", "AssertionError"),
}
"""The golds that do not hold, by number: the solution, and what is told about it."""
_FRAME = "pd.DataFrame({'a': [3, 1, 8, 2, 9, 4, 10, 6], 'b': list('xyxyzzxy')})"
_ARRAY = "np.array([7, 3, 9, 1, 12, 5, 8, 2, 11, 4, 10, 6])"


def _solutions(is_pandas: bool) -> Iterator[tuple[int, str, str]]:
    for number in range(COUNT):
        solution, meant = (PANDAS if is_pandas else NUMPY)[number % 6]
        if number in BAD:
            solution = BAD[number][0].replace("GIVEN", "df" if is_pandas else "x")
        yield number, solution.format(k=number // 6 + 1), meant.format(k=number // 6 + 1)


def _in_form_of_pandaseval(is_pandas: bool) -> Iterator[dict[str, Any]]:
    given, module, assertion = ("df", "pandas as pd", "pd.testing.assert_frame_equal")
    value, name = _FRAME, "PandasEval"
    if not is_pandas:
        given, module, assertion, value, name = "x", "numpy as np", "np.testing.assert_array_equal", _ARRAY, "NumpyEval"
    for number, solution, meant in _solutions(is_pandas):
        test = f"def check(f):\n    {given} = {value}\n    {assertion}(f({given}.copy()), {meant})\n"
        yield {
            "task_id": f"{name}/{number}",
            "prompt": f'import {module}\ndef solve({given}):\n    """Problem {number}."""\n',
            "entry_point": "solve",
            "canonical_solution": [f"    return {solution}"],
            "test": test,
        }


def _in_form_of_bigcodebench() -> Iterator[dict[str, Any]]:
    for number, solution, meant in _solutions(True):
        same = f"pd.testing.assert_frame_equal(task_func(df.copy()), {meant})"
        yield {
            "task_id": f"BigCodeBench/{number}",
            "complete_prompt": f'import pandas as pd\ndef task_func(df):\n    """Problem {number}."""\n',
            "canonical_solution": f"    return {solution}\n",
            "test": f"import unittest\nclass TestCases(unittest.TestCase):\n    def test_one(self):\n"
            f"        df = {_FRAME}\n        {same}\n",
            "libs": "['pandas']",
        }


_CONTEXT = '''import pandas as pd
import numpy as np

def exec_test(result, expected):
    {assertion}(result, expected)
    return 1

exec_context = r"""
import pandas as pd
import numpy as np
{given} = test_input
[insert]
"""

def test_execution(solution: str):
    code = exec_context.replace("[insert]", solution)
    {given} = {value}
    names = {{"test_input": {given}.copy()}}
    exec(code, names)
    assert exec_test(names["result"], {meant})
'''


def _in_form_of_ds1000() -> Iterator[dict[str, Any]]:
    for is_pandas in (True, False):
        given, value = ("df", _FRAME) if is_pandas else ("x", _ARRAY)
        assertion = "pd.testing.assert_frame_equal" if is_pandas else "np.testing.assert_array_equal"
        for number, solution, meant in _solutions(is_pandas):
            if (number % 2 == 0) is is_pandas or number in BAD:
                yield {
                    "prompt": f"Problem {number}.\nA:\n<code>\n",
                    "reference_code": f"result = {solution}",
                    "metadata": {
                        "problem_id": number + 100 * (not is_pandas),
                        "library": "Pandas" if is_pandas else "Numpy",
                    },
                    "code_context": _CONTEXT.format(assertion=assertion, given=given, value=value, meant=meant),
                }


FORMS: Mapping[str, Callable[[], Iterator[dict[str, Any]]]] = {
    "pandaseval": lambda: _in_form_of_pandaseval(True),
    "numpyeval": lambda: _in_form_of_pandaseval(False),
    "bigcodebench": _in_form_of_bigcodebench,
    "ds1000": _in_form_of_ds1000,
}


def written(folder: Path, form: str) -> Path:
    """A file with the problems in the form of a data set."""
    file = folder / f"{form}.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in FORMS[form]()))
    return file
