"""Turns whose gold does not hold cost no model a point: they are in no figure, and every place says so."""

import json
from typing import Any

import pytest

from eval_pipeline.cli.terminal import coverage_lines
from eval_pipeline.operations.headline import headline
from eval_pipeline.stages.checks.verdicts import check_gold
from eval_pipeline.stages.gold import gold_problems
from eval_pipeline.stages.scoring.metric_runner import UNSCORED
from eval_pipeline.store.tables import COVERAGE, METRICS, STATISTICS, TURN_RESULTS
from eval_pipeline_tests.gold_home import override
from eval_pipeline_tests.support import Lab, case

CASES = [
    case("whole", ("50", 50.0), ("add(50, 7)", 57.0)),
    case("half", ("50", 50.0), ("add(50, 7)", 99.0)),  # its second program does not give its answer
    case("none", ("divide(50, 0)", 1.0)),  # its program does not run
]


def rows(lab: Lab, table: Any, version: str = "null") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lab.inputs(version=version).read(table).to_pylist()
    return found


def test_gold_that_does_not_hold_is_in_no_figure_and_told_everywhere(lab: Lab) -> None:
    lab.suite(cases=CASES)
    lab.versions({"name": "null", "provider": "null"})
    lab.evaluate(version="null")
    correct = {row["turn_id"]: (row["correct"], row["score"], row["error_class"]) for row in rows(lab, TURN_RESULTS)}
    assert [name for name, (right, *_) in correct.items() if right is None] == ["small/half#1", "small/none#0"]
    assert correct["small/half#1"] == (None, None, None)
    reasons = {
        (row["turn_id"], row["reason"]) for row in rows(lab, METRICS) if row["reason"] and UNSCORED in row["reason"]
    }
    assert {name for name, _ in reasons} == {"small/half#1", "small/none#0"}
    means = {row["metric"]: row for row in rows(lab, STATISTICS) if row["split"] == "all"}
    assert (means["correct"]["n"], means["correct"]["mean"], means["conversation_success"]["n"]) == (3, 0.0, 1)
    (told,) = rows(lab, COVERAGE)
    assert (told["planned"], told["asked"], told["scored"], told["unscored"]) == (5, 5, 3, 2)
    assert (told["cases"], told["cases_in_suite"]) == (2, 3)
    assert [cause["cause"] for cause in json.loads(told["left_out"])] == ["unscored"]
    inputs = lab.inputs(version="null")
    said = "\n".join(coverage_lines([headline(inputs.workspace, inputs.place)]))
    verdict = check_gold(inputs)
    for text in (said, " ".join(verdict.facts["examples"])):  # type: ignore[arg-type]
        for name in ("half", "none", "divide(50, 0)"):
            assert name in text
    assert "2 turns cannot be scored" in said
    assert not verdict.passed


@pytest.mark.parametrize(
    ("action", "gold", "unscored"),
    [
        ("corrected", {"answer": 57.0}, ["small/none#0"]),
        ("both", {"answer": 57.0}, ["small/half#1", "small/none#0"]),  # the published one is still said to be right
        ("excluded", None, ["small/none#0"]),
    ],
)
def test_people_decide_what_is_scored(lab: Lab, action: str, gold: Any, unscored: list[str]) -> None:
    lab.suite(cases=CASES)
    lab.versions({"name": "null", "provider": "null"})
    override(lab, {"turn": "half#1", "action": action} | ({"gold": gold} if gold else {}))
    lab.evaluate(version="null", upto="cases")
    assert sorted(gold_problems(lab.inputs(version="null"))) == unscored
