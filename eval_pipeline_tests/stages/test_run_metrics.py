"""Metrics are run by one runner, which records what fails; turns whose gold does not hold are in no figure."""

import json
from typing import Any

import pytest

from eval_pipeline.cli.evaluating.outcome import coverage_lines
from eval_pipeline.core.model import MetricResult
from eval_pipeline.operations.runs.headline import headline
from eval_pipeline.stages.checks.verdicts import check_gold
from eval_pipeline.stages.scoring.gold import gold_problems
from eval_pipeline.stages.scoring.keeping import doubts_kept
from eval_pipeline.stages.scoring.metric_runner import UNSCORED, MetricRunner, joined
from eval_pipeline.store.tables import (
    ACCURACY_BY_COMPLEXITY,
    COST_PER_CORRECT_ANSWER,
    COVERAGE,
    ERRORS,
    METRICS,
    STATISTICS,
    TURN_RESULTS,
)
from eval_pipeline.tracks.base import Metric
from eval_pipeline.tracks.scored.suite_metrics import _extended
from eval_pipeline.workspace.asked.scope import failed_cases
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline_plugins.tracks.finqa.track import TRACK
from eval_pipeline_tests.chains import with_metrics
from eval_pipeline_tests.gold_home import override
from eval_pipeline_tests.support import Lab, Puppet, case, number, response


def boolean(name: str, function: Any) -> Metric:
    return Metric(name, function, "boolean", name)


def fails(x: int) -> bool:
    raise LookupError(f"no {x}")


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_values_of_pieces_are_those_of_the_whole(size: int) -> None:
    def told(x: int) -> MetricResult | float:
        if x % 3 == 1:
            raise ValueError(f"not {x}")
        return MetricResult(0.5, reason=f"of {x}") if x % 3 else 1.0

    runner = MetricRunner([Metric("told", told, "score", "told"), boolean("odd", lambda x: bool(x % 2))])
    values = [{"x": place} for place in range(7)]
    pieces = [runner.run(values[place : place + size]) for place in range(0, len(values), size)]
    assert joined(pieces) == runner.run(values)


def test_a_failing_metric_is_zero_with_its_error_and_the_others_run() -> None:
    metrics = [
        boolean("before", lambda x: x > 0),
        boolean("fails", fails),
        boolean("dependant", lambda fails, x: not fails and x > 0),
        boolean("after", lambda before: before),
    ]
    scored = MetricRunner(metrics).run([{"x": 7}])
    assert scored.plain == {"before": [True], "fails": [False], "dependant": [True], "after": [True]}
    assert scored.results["fails"] == {0: MetricResult(0.0, error="LookupError: no 7")}
    (failure,) = scored.failures
    assert (failure.metric, failure.inputs, failure.message) == ("fails", {"x": 7}, "no 7")
    assert "in fails" in failure.stack_trace


def test_a_metric_that_fails_on_a_turn_is_run_once_on_each_of_the_others() -> None:
    seen: list[int] = []

    def picky(x: int) -> int:
        seen.append(x)
        if x in {1, 3}:
            raise LookupError(f"no {x}")
        return 10 * x

    metrics = [Metric("picky", picky, "count", ""), Metric("halved", lambda picky, x: 1 / (x - 3), "score", "")]
    scored = MetricRunner(metrics).run([{"x": x} for x in range(5)])
    assert seen == [0, 1, 2, 3, 4]
    assert scored.plain["picky"] == [0, 0.0, 20, 0.0, 40]
    assert sorted(scored.results["picky"]) == [1, 3]
    failed = [(failure.turn, failure.metric) for failure in scored.failures]
    assert failed == [(1, "picky"), (3, "picky"), (3, "halved")]


def test_a_value_that_the_track_does_not_give_is_a_failure_of_the_metric() -> None:
    scored = MetricRunner([Metric("wants", lambda absent: 1.0, "score", "")]).run([{"x": 1}])
    assert scored.plain == {"wants": [0.0]}
    assert scored.failures[0].inputs == {"absent": None}
    told = "LookupError: it takes 'absent', and no value or earlier metric has that name; there are x"
    assert scored.results["wants"][0].error == told


@pytest.mark.parametrize("number", [float("nan"), float("inf"), MetricResult(float("-inf"))])
def test_what_is_no_number_is_a_failure_of_the_metric(number: Any) -> None:
    scored = MetricRunner([Metric("odd", lambda: number, "score", "")]).run([{}])
    assert scored.plain == {"odd": [0.0]}
    assert "a number the data cannot carry is None" in (scored.results["odd"][0].error or "")


@pytest.mark.parametrize(
    ("kind", "said", "plain"),
    [
        ("boolean", MetricResult(1.0, reason="because"), True),
        ("boolean", MetricResult(None, reason="does not apply"), None),
        ("score", MetricResult(0.25, details={"a": 1}), 0.25),
        ("label", MetricResult(label="sign_error"), "sign_error"),
        ("label", MetricResult(), None),
    ],
)
def test_what_a_metric_says_beyond_its_value_is_kept_beside_it(kind: Any, said: MetricResult, plain: Any) -> None:
    metrics = [Metric("m", lambda: said, kind, ""), Metric("next", lambda m: str(m), "label", "")]
    scored = MetricRunner(metrics).run([{}, {}])
    assert scored.plain == {"m": [plain, plain], "next": [str(plain), str(plain)]}
    assert {type(value) for value in scored.plain["m"]} == {type(plain)}
    assert scored.results == {"m": {0: said, 1: said}}


def counted(lab: Lab, metric: str) -> tuple[Any, ...]:
    query = "SELECT n, mean, failures, mean_without_failures FROM statistics"
    (row,) = lab.sql(f"{query} WHERE metric = '{metric}' AND split = 'all'")
    return row


def test_a_metric_that_fails_on_some_turns_is_on_record_and_in_both_means(
    small: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure counts 0 in `mean`, is left out of `mean_without_failures`, and has its row in `metric_errors`."""

    def odd(predicted: float) -> bool:
        if predicted == 57.0:
            raise ArithmeticError("57 is too much")
        return True

    extra = Metric("odd", odd, "boolean", "a test's")
    with_metrics(monkeypatch, TRACK, (*TRACK.metrics, extra))
    small.evaluate(upto="statistics")
    found = small.sql("SELECT turn_id, metric, inputs, message FROM metric_errors")
    assert found == [("small/alpha#1", "odd", '{"predicted":57.0}', "57 is too much")]
    values = dict(small.sql("SELECT turn_id, (value, error) FROM metrics WHERE metric = 'odd'"))
    assert values["small/alpha#1"] == (0.0, "ArithmeticError: 57 is too much")
    assert values["small/beta#0"] == (1.0, None)
    assert counted(small, "odd") == (3, pytest.approx(2 / 3), 1, 1.0)
    assert small.one("SELECT count(*) FROM finqa_turns WHERE numerical_match") == 3
    assert json.loads(small.one("SELECT to_json(list(odd ORDER BY turn_id)) FROM finqa_turns")) == [True, False, True]


def test_metrics_that_a_suite_asks_for_come_after_those_of_its_track() -> None:
    extra = Metric("extra", abs, "score", "a test's")
    assert _extended(TRACK, [extra]).metrics == (*TRACK.metrics, extra)
    assert extra not in TRACK.metrics
    assert _extended(TRACK, []) is TRACK


def test_a_failure_on_one_sample_is_no_failure_of_the_others(small: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    small.versions({"name": "puppet", "provider": "puppet", "samples_per_turn": 3})
    calls: list[int] = []

    def third(predicted: float) -> bool:
        calls.append(1)
        if len(calls) == 3:
            raise ValueError("the third call")
        return True

    with_metrics(monkeypatch, TRACK, (*TRACK.metrics, Metric("third", third, "boolean", "a test's")))
    small.evaluate(upto="statistics")
    assert counted(small, "third") == (9, pytest.approx(8 / 9), 1, 1.0)


CASES = [
    case("whole", ("50", 50.0), ("add(50, 7)", 57.0)),
    case("half", ("50", 50.0), ("add(50, 7)", 99.0)),  # its second program does not give its answer
    case("none", ("divide(50, 0)", 1.0)),  # its program does not run
]


def rows(lab: Lab, table: Any, version: str = "null") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lab.inputs(version=version).read(table).to_pylist()
    return found


@pytest.mark.always
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


def test_corrected_gold_is_run_once_for_scoring_and_for_its_audit(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.suite(cases=CASES)
    lab.versions({"name": "null", "provider": "null"})
    corrected = {"turn": "whole#1", "action": "corrected", "gold": {"answer": 99.0}}
    override(lab, corrected, {"turn": "half#1", "action": "excluded"})
    lab.evaluate(version="null", upto="cases")
    scoring = lab.inputs(version="null")
    audit = Inputs(scoring.workspace, "small")
    ran, checked = list[str](), TRACK.check_gold

    def noting(_: object, case: Any) -> Any:
        ran.append(case.id)
        return checked(case)

    monkeypatch.setattr(type(TRACK), "check_gold", noting)
    for _ in range(2):
        assert sorted(gold_problems(scoring)) == ["small/none#0", "small/whole#1"]
        doubted = {doubt.turn_id for case in audit.each_case() for doubt in doubts_kept(audit, audit.gold.case(case))}
        assert doubted == {"small/half#1", "small/none#0", "small/whole#1"}, "an excluded turn is doubted still"
    assert sorted(ran) == sorted(scoring.gold.cases)


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
