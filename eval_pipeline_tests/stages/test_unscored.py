"""Turns whose gold does not hold cost no model a point: they are in no figure, and every place says so."""

import json
from typing import Any

import pytest

from eval_pipeline.cli.terminal import coverage_lines
from eval_pipeline.operations.headline import headline
from eval_pipeline.stages.checks.verdicts import check_gold
from eval_pipeline.stages.gold import gold_problems
from eval_pipeline.stages.scoring.metric_runner import UNSCORED
from eval_pipeline.store.tables import (
    ACCURACY_BY_COMPLEXITY,
    COST_PER_CORRECT_ANSWER,
    COVERAGE,
    ERRORS,
    METRICS,
    STATISTICS,
    TURN_RESULTS,
)
from eval_pipeline.workspace.scope import failed_cases
from eval_pipeline_tests.gold_home import override
from eval_pipeline_tests.support import Lab, Puppet, case, number, response

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
    assert failed_cases(lab.inputs().record, lab.inputs(version="null").place) == {"whole", "half"}
    assert {row["turn_id"] for row in rows(lab, ERRORS)}.isdisjoint({"small/half#1", "small/none#0"})
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
    for text in (said, str(verdict.facts["examples"])):
        for name in ("half", "none", "divide(50, 0)"):
            assert name in text
    assert "2 turns cannot be scored" in said
    assert not verdict.passed


@pytest.mark.parametrize(
    ("turn", "action", "gold", "unscored"),
    [
        ("half#1", "corrected", {"answer": 57.0}, []),
        ("half#1", "both", {"answer": 57.0}, ["small/half#1"]),  # the published one is still said to be right
        ("half#1", "excluded", None, []),
        ("whole#1", "both", {"answer": 99.0}, ["small/half#1", "small/whole#1"]),
    ],
)
def test_people_decide_what_is_scored(lab: Lab, turn: str, action: str, gold: Any, unscored: list[str]) -> None:
    lab.suite(cases=CASES)
    lab.versions({"name": "null", "provider": "null"})
    override(lab, {"turn": turn, "action": action} | ({"gold": gold} if gold else {}))
    lab.evaluate(version="null", upto="cases")
    assert sorted(gold_problems(lab.inputs(version="null"))) == sorted([*unscored, "small/none#0"])


def test_what_broken_gold_cost_is_in_totals_but_in_no_ratio(lab: Lab, puppet: type[Puppet]) -> None:
    """Each turn takes 100 + 10 tokens, in each of two samples; answers are right, but gold of `half` and `none` is not.

    Of the conversations only `whole` can be decided: 4 turns of 110 tokens for 2 successes. Of the turns, 3 of 5 are
    scored, so that 6 answers of 110 tokens are 6 right turns.
    """
    lab.suite(cases=CASES)
    lab.versions({"name": "puppet", "provider": "puppet", "samples_per_turn": 2})
    puppet.answer = staticmethod(lambda call: response(number(57 if call.turn_index else 50), 100, 10))
    lab.evaluate()
    (row,) = rows(lab, COST_PER_CORRECT_ANSWER, "puppet")
    assert (row["tokens_total"], row["conversations"], row["successful_conversations"]) == (1100, 6, 2)
    assert (row["turns"], row["correct_turns"]) == (10, 6)
    assert (row["tokens_per_success"], row["tokens_per_correct_turn"]) == (220, 110)
    means = {row["metric"]: row for row in rows(lab, STATISTICS, "puppet") if row["split"] == "all"}
    for name, n in (("correct", 6), ("conversation_success", 2), ("pass@2", 3)):
        assert (means[name]["n"], means[name]["mean"]) == (n, 1.0), name
    levels = rows(lab, ACCURACY_BY_COMPLEXITY, "puppet")
    assert {row["n"] for row in levels if row["axis"] == "turn_number"} == {4, 2}
