"""What went wrong is told by evidence: the result, the reference code, variants, or what would mend the answer."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from eval_pipeline.sandbox.inside.encode import encode
from eval_pipeline.sandbox.results import read_told
from eval_pipeline.tracks.pandas_code.failures.modes import FAILURE_MODES, OF_ASPECT, OF_KIND
from eval_pipeline.tracks.pandas_code.failures.of_code import failure_beside_reference
from eval_pipeline.tracks.pandas_code.failures.of_results import failure_of_answers, failure_of_result
from eval_pipeline.variants.mutants import Kind
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.pandas_code.helpers import answer, needs_sandbox, read, scores, shared

GOLDEN = golden("pandas_failures.yaml")


def told(given: Any) -> Any:
    outcome = read_told(b'{"result":' + encode(pd.DataFrame(given) if isinstance(given, dict) else given) + b"}")
    assert outcome is not None
    return outcome["result"]


@pytest.mark.parametrize("entry", GOLDEN, ids=[entry["name"] for entry in GOLDEN])
def test_a_result_shows_the_mistake(entry: dict[str, Any]) -> None:
    returned, expected = told(entry["returned"]), told(entry["expected"])
    found = failure_of_result(returned, expected, ordered=entry.get("ordered", False), order_keys=())
    assert (found and found.mode) == entry["mode"]


def test_every_kind_of_requirement_has_a_mode() -> None:
    assert OF_KIND.keys() == {str(kind) for kind in Kind}
    assert {*OF_KIND.values(), *OF_ASPECT.values()} <= set(FAILURE_MODES)


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        ({}, "wrong_format"),
        ({"share": "12.5"}, "wrong_unit"),
        ({"share": "about an eighth"}, "wrong_format"),
        ({"share": "0.4"}, None),
    ],
)
def test_closed_answers_show_the_mistake(given: dict[str, str], mode: str | None) -> None:
    found = failure_of_answers(given, {"share": False}, {"share": "0.125"})
    assert (found and found.mode) == mode
    assert failure_of_answers({"name": "new york"}, {"name": False}, {"name": "New York"}).mode == "wrong_format"  # type: ignore[union-attr]


REFERENCE = 'large = df[df["amount"] > 3]\nresult = large.groupby("city")["amount"].sum()'


@pytest.mark.parametrize(
    ("code", "mode"),
    [
        (REFERENCE.replace("> 3", ">= 3"), "wrong_boundary"),
        (REFERENCE.replace("> 3", "< 3"), "wrong_filter"),
        (REFERENCE.replace(".sum", ".mean"), "wrong_aggregate"),
        (REFERENCE.replace("city", "fruit"), "wrong_grouping"),
        (REFERENCE.replace("> 3", "< 3").replace(".sum", ".mean"), None),
        (REFERENCE, None),
        ("result = 0", None),
        ("result = (", None),
    ],
)
def test_one_altered_line_of_the_reference_is_the_mistake(code: str, mode: str | None) -> None:
    found = failure_beside_reference(code, REFERENCE)
    assert (found and found.mode) == mode


class TestOfTurns:
    """With the sandbox."""

    pytestmark = needs_sandbox

    def test_other_words_for_a_mutant_are_known_by_what_they_give(self, tmp_path: Path) -> None:
        turn = {"question": "Amount by city of sales over 4?", "code": REFERENCE.replace("> 3", "> 4")}
        case = read({"id": "x", "tables": "sold", "turns": [turn]}, shared(tmp_path))
        other = """
big = sold.query("amount >= 4")
keys = big["city"]
result = big["amount"].groupby(keys).agg("sum")
"""
        assert scores(case, answer(other))["failure_mode"] == "wrong_boundary"

    def test_without_reference_code_what_would_mend_the_answer_is_the_mistake(self, tmp_path: Path) -> None:
        turn = {"question": "How many sales have an amount of 4 or more?", "expected": 5}
        case = read({"id": "x", "tables": "sold", "turns": [turn]}, shared(tmp_path))
        assert scores(case, answer('result = int((df["amount"] >= 4).sum())'))["failure_mode"] is None
        wrong = scores(case, answer('result = int((df["amount"] > 4).sum())'))
        assert (wrong["result_match"], wrong["failure_mode"]) == (False, "wrong_boundary")
        assert scores(case, answer("result = 17 * 3"))["failure_mode"] is None
        assert scores(case, answer("result = 500"))["failure_mode"] == "wrong_unit"

    def test_nobody_could_recover_a_recorded_answer(self, tmp_path: Path) -> None:
        turn = {"question": "How many?", "code": "result = len(df)"}
        case = read({"id": "x", "tables": "sold", "turns": [turn]}, shared(tmp_path))
        found = scores(case, answer("result = df.nothing"))
        assert (found["failure_mode"], found["recovery_score"]) == ("execution_error", None)
