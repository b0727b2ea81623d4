from typing import Any

import pytest

from eval_pipeline.core.model import Attempt, Failed, MetricResult
from eval_pipeline.tracks import recovery
from eval_pipeline.tracks.recovery import attempt_outcomes, fix_quality, recovery_details
from eval_pipeline_tests.goldens import golden

from .helpers import attempt_at, case_of, failed_call, gold_turn, measured

BROKEN = '{"plan": [{"tool": "compute", "operation": "growth", "args": [1, 2]}]}'
CUT = '{"plan": [{"tool": '
RIGHT = '{"plan": [{"tool": "extract", "value": 412.5}]}'
CASE = case_of(gold_turn("412.5", printed="412.5"))
TURN = CASE.turns[0]


def _attempt(text: str, number: int = 0) -> Attempt:
    return attempt_at(CASE, TURN, text, number=number)


@pytest.mark.parametrize("row", golden("finqa_recovery.yaml"), ids=lambda row: str(row["outcomes"]))
def test_golden(row: dict[str, Any]) -> None:
    outcomes = tuple((name, None if name is None else f"a {name}") for name in row["outcomes"])
    known: dict[str, Any] = {"attempts_outcomes": outcomes}
    for metric in recovery.METRICS:
        said = metric.function(*[known[name] for name in metric.inputs()])
        if isinstance(said, MetricResult):
            assert said.details == {"error_message": outcomes[0][1], "recovery_details": recovery_details(outcomes)}
            assert said.value is not None
            said = bool(said.value)
        known[metric.name] = said
    columns = {
        "has_error": "has_error",
        "recovery_attempts_count": "attempts",
        "recovery_success": "success",
        "recovery_success_rate": "rate",
        "error_fix_quality": "quality",
        "recovery_score": "score",
    }
    for metric_name, column in columns.items():
        wanted = row[column]
        assert known[metric_name] == (pytest.approx(wanted, abs=1e-6) if isinstance(wanted, float) else wanted)
    details = recovery_details(outcomes)
    assert [detail["fix_quality"] for detail in details] == row["fixes"]
    assert [detail["attempt_number"] for detail in details] == list(range(1, len(outcomes)))
    assert [detail["success"] for detail in details] == [name is None for name in row["outcomes"][1:]]
    assert [detail["error"] for detail in details] == [message for _, message in outcomes[1:]]


def test_fix_quality() -> None:
    assert (fix_quality("a", None), fix_quality("a", "b"), fix_quality("a", "a")) == (1.0, 0.5, 0.1)


def test_outcomes_of_attempts() -> None:
    attempts = (_attempt(CUT), failed_call(TURN, 1), _attempt(BROKEN, 2), _attempt(RIGHT, 3))
    classes = [error_class for error_class, _ in attempt_outcomes(attempts)]
    assert classes == ["syntax_error", "call_error", "value_error", None]
    messages = [message for _, message in attempt_outcomes(attempts)]
    assert isinstance(attempts[0].outcome, Failed)
    assert messages[0] == attempts[0].outcome.message
    assert messages[1] == "no response within 60 s"
    assert messages[3] is None


def test_a_recovered_turn_is_scored_by_its_last_attempt() -> None:
    found = measured(CASE, TURN, _attempt(CUT), _attempt(BROKEN, 1), _attempt(RIGHT, 2))
    assert found["numerical_match"] is True
    assert found["failure_mode"] is None
    assert found["recovery_score"] == pytest.approx(0.5 * 0.5 + 0.3 * 0.75 + 0.2 * 2 / 3)


@pytest.mark.parametrize(
    ("attempts", "mode"),
    [
        ((failed_call(TURN),), "no_answer"),
        ((_attempt(""),), "no_answer"),
        ((_attempt(CUT), _attempt("", 1)), "execution_error"),
        ((_attempt(CUT), failed_call(TURN, 1)), "execution_error"),
        ((_attempt(""), _attempt(CUT, 1)), "execution_error"),
        ((_attempt(""), _attempt("", 1)), "no_answer"),
    ],
)
def test_no_answer_is_when_no_attempt_said_anything(attempts: tuple[Attempt, ...], mode: str) -> None:
    found = measured(CASE, TURN, *attempts)
    assert found["failure_mode"] == mode
    assert found["numerical_match"] is False
