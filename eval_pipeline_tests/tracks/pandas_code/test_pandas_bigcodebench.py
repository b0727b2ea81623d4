"""BigCodeBench, in the form that is published: programs to complete, unittest classes, packages as a text."""

import json
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.tracks.pandas_code.importers.bigcodebench import read_bigcodebench
from eval_pipeline_tests.tracks.pandas_code.helpers import needs_sandbox, read, scores, shared

PROMPT = '''import pandas as pd
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
    "complete_prompt": PROMPT,
    "instruct_prompt": "Count the values per bin.",
    "canonical_solution": SOLUTION,
    "code_prompt": "import pandas as pd\nimport numpy as np\ndef task_func(values, bins=2):\n",
    "test": TEST,
    "entry_point": "task_func",
    "doc_struct": "{}",
    "libs": "['pandas', 'numpy']",
}


def written(folder: Path, *tasks: dict[str, Any]) -> Path:
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
    found = [case["id"] for case in read_bigcodebench(written(tmp_path, *others, TASK), None)]
    assert found == ["bigcodebench_2", "bigcodebench_7"]
    assert len(list(read_bigcodebench(written(tmp_path, *others, TASK), 1))) == 1
    with pytest.raises(InputError, match="expected a list of packages"):
        list(read_bigcodebench(written(tmp_path, TASK | {"libs": "pandas"}), None))


@needs_sandbox
def test_programs_are_judged_by_their_unittest_class(tmp_path: Path) -> None:
    (raw,) = read_bigcodebench(written(tmp_path, TASK), None)
    case = read(raw, shared(tmp_path))
    right = PROMPT + SOLUTION
    assert scores(case, right)["result_match"] is True
    for old, new in (("[0]})", "[0] + 1})"), ("raise ValueError", "raise OSError")):
        assert scores(case, right.replace(old, new))["result_match"] is False, new
