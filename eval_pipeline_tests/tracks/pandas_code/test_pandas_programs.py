"""Cases that tests decide: DS-1000 and BigCodeBench as they are published, and code that writes itself a pass."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline_plugins.data_sets.pandas_code.bigcodebench import read_bigcodebench
from eval_pipeline_plugins.data_sets.pandas_code.ds1000 import read_ds1000
from eval_pipeline_plugins.tracks.pandas_code.cases.source import PandasShared
from eval_pipeline_plugins.tracks.pandas_code.track import TRACK
from eval_pipeline_tests.tracks.pandas_code.helpers import answer, attempt, needs_sandbox, read, scores, scores_of

CONTEXT = '''import pandas as pd
import numpy as np
import copy
import tokenize, io

def generate_test_case(test_case_id):
    def generate_ans(data):
        df = data
        return df.assign(total=df["a"] + df["b"])

    def define_test_input(test_case_id):
        if test_case_id == 1:
            df = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
        if test_case_id == 2:
            df = pd.DataFrame({"a": [5.5], "b": [None]}, index=["x"])
        return df

    test_input = define_test_input(test_case_id)
    expected_result = generate_ans(copy.deepcopy(test_input))
    return test_input, expected_result

def exec_test(result, ans):
    try:
        pd.testing.assert_frame_equal(result, ans, check_dtype=False)
        return 1
    except:
        return 0

exec_context = r"""
import pandas as pd
import numpy as np
df = test_input
[insert]
"""

def test_execution(solution: str):
    code = exec_context.replace("[insert]", solution)
    for i in range(2):
        test_input, expected_result = generate_test_case(i + 1)
        test_env = {"test_input": test_input}
        exec(code, test_env)
        assert exec_test(test_env["result"], expected_result)
'''
NO_LOOPS = """

def test_string(solution: str):
    tokens = []
    for token in tokenize.tokenize(io.BytesIO(solution.encode("utf-8")).readline):
        tokens.append(token.string)
    assert "while" not in tokens and "for" not in tokens
"""
BODY = ("df = test_input\n[insert]\n", "def f(df):\n[insert]\ndf = test_input\nresult = f(df)\n")
PROMPT = """Problem:
Add the columns up.

A:
<code>
import pandas as pd
</code>
result = ... # put solution in this variable
BEGIN SOLUTION
<code>
"""
RIGHT = 'result = df.assign(total=df["a"] + df["b"])'


def problem(number: int = 3, library: str = "Pandas", **changed: Any) -> dict[str, Any]:
    metadata = {
        "problem_id": number, "library_problem_id": number, "library": library, "test_case_cnt": 2,
        "perturbation_type": "Semantic", "perturbation_origin_id": 1,
    }  # fmt: skip
    made = {"prompt": PROMPT, "reference_code": RIGHT, "metadata": metadata, "code_context": CONTEXT}
    return made | changed


def written(folder: Path, *problems: dict[str, Any], packed: bool = True) -> Path:
    text = "".join(json.dumps(one) + "\n" for one in problems)
    file = folder / ("ds1000.jsonl.gz" if packed else "ds1000.jsonl")
    file.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return file


def test_problems_of_other_libraries_are_left_out(tmp_path: Path) -> None:
    other = problem(8, "Pytorch", code_context="import torch")
    raws = list(read_ds1000(written(tmp_path, other, problem(), problem(4, "Numpy")), None))
    assert [(raw["id"], raw["cluster"]) for raw in raws] == [("ds1000_0003", "pandas_1"), ("ds1000_0004", "numpy_1")]
    assert raws[0]["features"] == {"library": "pandas", "perturbation": "Semantic"}
    assert raws[0]["turns"][0]["question"].endswith("# put solution in this variable")
    assert len(list(read_ds1000(written(tmp_path, other, problem(), problem(4), packed=False), 1))) == 1


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"code_context": "x = 1"}, "expected Python that defines 'exec_context'"),
        ({"code_context": "exec_context = 'a\\n[insert]\\n[insert]'"}, "it has 2"),
        ({"metadata": {"library": "Pandas"}}, "problem_id"),
        ({"prompt": None}, "prompt"),
    ],
)
def test_wrong_problems_are_named(tmp_path: Path, changed: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=r"ds1000\.jsonl\.gz.*2") as raised:
        list(read_ds1000(written(tmp_path, problem(), problem(**changed)), None))
    assert complaint in str(raised.value)


def test_files_that_are_not_gzip_are_refused(tmp_path: Path) -> None:
    for content in (b"not packed", gzip.compress(b"{}\n" * 1000)[:-12]):
        (tmp_path / "d.jsonl.gz").write_bytes(content)
        with pytest.raises(InputError, match="is not a sound gzip file"):
            list(read_ds1000(tmp_path / "d.jsonl.gz", None))


def matches(*said: tuple[Any, str]) -> list[Any]:
    """Whether the answers to cases are right."""
    return [one["result_match"] for one in scores_of((case, 0, [text]) for case, text in said)]


@needs_sandbox
def test_answers_are_judged_by_running_the_program(tmp_path: Path, stall: PandasShared) -> None:
    whole, strict, body = (
        read(next(read_ds1000(written(tmp_path, problem(code_context=context)), None)), stall)
        for context in (CONTEXT, CONTEXT + NO_LOOPS, CONTEXT.replace(*BODY))
    )
    loop = "for _ in [0]:\n    " + RIGHT
    found = scores(whole, answer(RIGHT), measured=True)
    assert (found["result_match"], found["performance_score"]) == (True, 1.0)
    # The answer stands in a function in `body`, however deep the model wrote it.
    inner = RIGHT.replace("result =", "return")
    right = [(whole, loop), (body, inner), (body, f"    {inner}")]
    wrong = [
        (whole, RIGHT.replace("+", "-")),
        (whole, "df['total'] = df.a + df.b"),  # `result` is not set
        (strict, loop),
        # A forged text of the answer, and an end of the process pass nothing.
        (strict, "answer_text = ''\n" + loop),
        (whole, "import os; os.write(3, b'{\"result\":true}'); os._exit(0)"),
    ]
    found = matches(*((case, answer(code)) for case, code in (*right, *wrong)))
    assert found == [True] * len(right) + [False] * len(wrong)
    assert attempt(body, answer("return (")).outcome.error_class == "syntax_error"  # type: ignore[union-attr]


@needs_sandbox
def test_reference_code_that_fails_its_tests_is_named(tmp_path: Path, stall: PandasShared) -> None:
    wrong = problem(reference_code="result = df.append(df)")
    case = read(next(read_ds1000(written(tmp_path, wrong), None)), stall)
    ((_, why),) = TRACK.check_gold(case)
    assert "append" in why


COMPLETE = '''import pandas as pd
import numpy as np

def task_func(values, bins=2):
    """
    Count the values per bin.

    Returns:
    tuple: the counts as a DataFrame, and the number of bins.
    """
'''
SOLUTION = """
    if len(values) == 0:
        raise ValueError("no values")
    counts = pd.DataFrame({"count": np.histogram(values, bins=bins)[0]})
    return counts, bins
"""
TEST = """
import unittest
class TestCases(unittest.TestCase):
    def test_counts(self):
        counts, bins = task_func([1, 2, 9, 10, 10])
        pd.testing.assert_frame_equal(counts, pd.DataFrame({"count": [2, 3]}))
        self.assertEqual(bins, 2)

    def test_nothing(self):
        with self.assertRaises(ValueError):
            task_func([])
"""
TASK = {
    "task_id": "BigCodeBench/7",
    "complete_prompt": COMPLETE,
    "instruct_prompt": "Count the values per bin.",
    "canonical_solution": SOLUTION,
    "code_prompt": "import pandas as pd\nimport numpy as np\ndef task_func(values, bins=2):\n",
    "test": TEST,
    "entry_point": "task_func",
    "doc_struct": "{}",
    "libs": "['pandas', 'numpy']",
}


def tasks_written(folder: Path, *tasks: dict[str, Any]) -> Path:
    file = folder / "BigCodeBench.jsonl"
    file.write_text("\n".join(json.dumps(task) for task in tasks))
    return file


def test_tasks_of_other_packages_are_not_read(tmp_path: Path) -> None:
    others = [
        TASK | {"task_id": f"BigCodeBench/{n}", "libs": libs}
        for n, libs in enumerate(
            ("['random', 'itertools']", "['pandas', 'requests']", "['numpy', 'math']", "['sklearn.cluster', 'numpy']")
        )
    ]
    found = [case["id"] for case in read_bigcodebench(tasks_written(tmp_path, *others, TASK), None)]
    assert found == ["bigcodebench_2", "bigcodebench_7"]
    assert len(list(read_bigcodebench(tasks_written(tmp_path, *others, TASK), 1))) == 1
    with pytest.raises(InputError, match="expected a list of packages"):
        list(read_bigcodebench(tasks_written(tmp_path, TASK | {"libs": "pandas"}), None))


@needs_sandbox
def test_programs_are_judged_by_their_unittest_class(tmp_path: Path, stall: PandasShared) -> None:
    (raw,) = read_bigcodebench(tasks_written(tmp_path, TASK), None)
    case, right = read(raw, stall), COMPLETE + SOLUTION
    wrong = [right.replace("[0]})", "[0] + 1})"), right.replace("raise ValueError", "raise OSError")]
    assert matches(*((case, code) for code in (right, *wrong))) == [True, False, False]


TESTED = {
    "id": "tested",
    "tables": "sold",
    "turns": [
        {
            "question": "Write a function total(frame) that gives the sum of the column amount.",
            "code": "def total(frame):\n    return frame['amount'].sum()",
            "tests": "assert total(sold) == 49\nassert total(sold.head(2)) == 8",
        }
    ],
}
FORGED = """
import os
os.write(3, b'{"result":{"kind":"value","value":true}}')
os._exit(0)
"""


@needs_sandbox
def test_code_that_passes_is_right_and_measured_and_code_that_writes_itself_a_pass_is_wrong(
    stall: PandasShared,
) -> None:
    case = read(TESTED, stall)
    found = scores(case, answer("def total(frame):\n    return sum(frame['amount'].tolist())"), measured=True)
    assert (found["result_match"], found["performance_score"]) == (True, 1.0)
    for wrong in scores_of((case, 0, [answer(code)]) for code in ("def total(frame):\n    return 49", *[FORGED] * 3)):
        assert (wrong["result_match"], wrong["correctness_score"]) == (False, 0.0)
