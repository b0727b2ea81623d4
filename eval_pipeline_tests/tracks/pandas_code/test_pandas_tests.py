"""Cases that tests decide: code that writes itself a pass is wrong, every time."""

from pathlib import Path

from eval_pipeline_tests.tracks.pandas_code.helpers import answer, needs_sandbox, read, scores, shared

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
def test_code_that_writes_itself_a_pass_is_wrong(tmp_path: Path) -> None:
    case = read(TESTED, shared(tmp_path))
    found = [scores(case, answer(FORGED)) for _ in range(5)]
    assert {(one["result_match"], one["correctness_score"]) for one in found} == {(False, 0.0)}


@needs_sandbox
def test_code_that_passes_is_right_and_measured_beside_the_reference(tmp_path: Path) -> None:
    case = read(TESTED, shared(tmp_path))
    found = scores(case, answer("def total(frame):\n    return sum(frame['amount'].tolist())"))
    assert (found["result_match"], found["performance_score"]) == (True, 1.0)
    wrong = scores(case, answer("def total(frame):\n    return 49"))
    assert (wrong["result_match"], wrong["correctness_score"]) == (False, 0.0)
