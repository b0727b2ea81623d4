"""What stand-ins break: each way shows up as its failure mode and in the metric that is meant to see it."""

from random import Random
from typing import Any

import pytest

from eval_pipeline.core.model import Case
from eval_pipeline.tracks.pandas_code.cases.source import PandasShared
from eval_pipeline.tracks.pandas_code.damage import damaged_response
from eval_pipeline.tracks.pandas_code.failures.modes import FAILURE_MODES
from eval_pipeline.tracks.pandas_code.track import TRACK
from eval_pipeline_tests.support import Lab
from eval_pipeline_tests.tracks.pandas_code.helpers import (
    LARGEST,
    TOTALS,
    needs_sandbox,
    read,
    scores,
    scores_of,
    stall_lab,
)

pytestmark = needs_sandbox

RICH: dict[str, Any] = {
    "id": "rich",
    "turns": [
        {
            "question": "Join sold and cities on city, keep rows where the amount is greater than 2 and the country is "
            "NO. What is the total amount per fruit and city? Give the top 2 by amount, sorted by amount descending.",
            "code": """\
merged = sold.merge(cities, on="city")
wanted = merged[(merged["amount"] > 2) & (merged["country"] == "NO")]
totals = wanted.groupby(["fruit", "city"])["amount"].sum().reset_index()
result = totals.sort_values("amount", ascending=False).head(2)
""",
        }
    ],
}
RUNS = {
    "wrong_n": ("understanding_score", "coverage_score"),
    "missing_sort": ("understanding_score",),
    "wrong_filter": ("understanding_score",),
    "wrong_grouping": ("understanding_score",),
    "wrong_aggregate": ("understanding_score",),
}
"""Modes of code that runs, and the scores one of which falls."""
NOT_MADE = {"wrong_join", "wrong_boundary", "timeout", "wrong_format", "wrong_constant", "wrong_step"}
"""Modes that stand-ins do not make, or not of this gold."""


@pytest.fixture
def rich(stall: PandasShared) -> Case:
    return read(RICH, stall)


def _damaged(case: Case, mode: str) -> str:
    text = damaged_response(case.turns[0].gold, mode, Random(1))
    assert text is not None, mode
    return text


def test_the_gold_scores_one_in_everything(rich: Case) -> None:
    assert scores(rich, TRACK.oracle(rich.turns[0]), measured=True)["overall_score"] == pytest.approx(1.0)


@pytest.mark.parametrize("mode", [mode for mode in FAILURE_MODES if mode not in NOT_MADE])
def test_every_way_is_found_under_its_name_and_in_the_metric_meant_to_see_it(rich: Case, mode: str) -> None:
    found = scores(rich, _damaged(rich, mode))
    assert found["failure_mode"] == mode
    if mode in RUNS:
        assert found["has_error"] is False
        assert found["correctness_score"] < 1
        assert min(found[name] for name in RUNS[mode]) < 1 - 1e-9
        assert found["quality_score"] == pytest.approx(1.0)


@pytest.mark.parametrize("mode", ["syntax_error", "unknown_column", "wrong_dtype"])
def test_code_that_fails_is_an_error_to_recover_from(rich: Case, mode: str) -> None:
    text, right = _damaged(rich, mode), TRACK.oracle(rich.turns[0])
    once, mended, again = scores_of((rich, 0, texts) for texts in ([text], [text, right], [text, text, right]))
    assert (once["has_error"], once["recovery_score"]) == (True, None)
    assert (mended["recovery_score"], mended["correctness_score"]) == (pytest.approx(0.5 + 0.3 + 0.2 / 3), 1.0)
    assert again["recovery_score"] == pytest.approx(0.5483, abs=5e-5)


def test_a_join_of_another_kind_shows_in_the_result(stall: PandasShared) -> None:
    code = 'result = len(sold.merge(cities, how="left", on="city"))'
    turns = [{"question": "Join cities to sold on city, and keep sales without a city. How many rows?", "code": code}]
    case = read({"id": "left", "turns": turns}, stall)
    found = scores(case, _damaged(case, "wrong_join"))
    assert (found["failure_mode"], found["correctness_score"]) == ("wrong_join", 0.0)


def test_a_way_that_the_gold_cannot_go_wrong_in_gives_nothing(stall: PandasShared) -> None:
    case = read({"id": "plain", "turns": [{"question": "How many rows?", "code": "result = len(sold)"}]}, stall)
    for mode in ("wrong_n", "missing_sort", "wrong_filter", "wrong_join", "wrong_grouping"):
        assert damaged_response(case.turns[0].gold, mode, Random(1)) is None
    with pytest.raises(ValueError, match="sign_error"):
        damaged_response(case.turns[0].gold, "sign_error", Random(1))


def test_recovery_figures_are_those_that_were_simulated(lab: Lab) -> None:
    """Every first attempt names an unknown column, and every recovery attempt is right: 0.5 + 0.3 + 0.2/3 each."""
    stall_lab(lab, TOTALS, LARGEST)
    options = {"seed": 3, "rates": {"unknown_column": 1.0}, "recovery_rate": 1.0, "breaking_modes": ["unknown_column"]}
    never = options | {"recovery_rate": 0.0, "class_change_rate": 0.0}
    lab.versions(
        {"name": "mends", "provider": "simulated", "options": options},
        {"name": "never", "provider": "simulated", "options": never},
    )
    for version in ("mends", "never"):
        lab.evaluate("stall", version)
    found = lab.sql(
        "SELECT model_version, avg(has_error::INT), avg(recovery_attempts_count), avg(recovery_score), "
        "avg(correct::INT) FROM pandas_turns GROUP BY ALL ORDER BY ALL"
    )
    assert found == [
        ("mends", 1.0, 1.0, pytest.approx(0.5 + 0.3 + 0.2 / 3), 1.0),
        ("never", 1.0, 2.0, pytest.approx(0.3 * 0.1 + 0.2 * 2 / 3), 0.0),
    ]
    assert lab.sql("SELECT DISTINCT error_class FROM attempts WHERE number = 0") == [("column_error",)]
