"""Matches of numbers, how numbers are read, and recovery from errors."""

import json
import re
from math import inf, isfinite, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.answers.printed import Number, as_printed, only_number, printed_number
from eval_pipeline.core.model import Attempt, Failed, MetricResult
from eval_pipeline.core.numbers import normalised_text, number_text, round_half_up
from eval_pipeline.tracks.scored import recovery
from eval_pipeline.tracks.scored.recovery import attempt_outcomes, fix_quality, recovery_details
from eval_pipeline_plugins.tracks.finqa.cases.document import numbers_in
from eval_pipeline_plugins.tracks.finqa.metrics.matches import (
    exact_match,
    general_match,
    numerical_match,
    sign_agnostic_match,
    soft_match,
    unit_agnostic_match,
)
from eval_pipeline_tests.goldens import golden

from .helpers import attempt_at, case_of, failed_call, gold_turn, measured, measured_response

NUMBERS = st.one_of(st.floats(-1e6, 1e6), st.floats(-1, 1), st.sampled_from([0.0, 1e308, inf, -inf, nan]))
EXPECTED = st.one_of(st.floats(-1e6, 1e6), st.floats(-1, 1), st.just(0.0))


def _matches(predicted: Any, percent: bool, expected: float | str, printed: str | None) -> tuple[str, bool | None]:
    number = None if printed is None else printed_number(printed)
    numerical = numerical_match(predicted, expected)
    held = {
        "n": numerical,
        "s": soft_match(predicted, expected),
        "u": unit_agnostic_match(predicted, expected),
        "g": sign_agnostic_match(predicted, expected),
        "a": general_match(predicted, percent, expected, number, numerical),
    }
    assert all(isinstance(value, bool) for value in held.values())
    return "".join(name for name, holds in held.items() if holds), exact_match(predicted, expected, printed, number)


@pytest.mark.parametrize("row", golden("finqa_matches.yaml"), ids=lambda row: f"{row['p']}~{row['e']}")
def test_golden(row: dict[str, Any]) -> None:
    predicted, percent = row["p"], False
    if isinstance(predicted, str) and (number := printed_number(predicted)) is not None:
        predicted, percent = number.value, number.percent
    expected = row["e"] if isinstance(row["e"], str) else float(row["e"])
    held, exact = _matches(predicted, percent, expected, row.get("printed"))
    assert (held, exact) == (row["held"].replace(" ", ""), row.get("exact"))
    if isinstance(row["p"], str):  # through the whole track
        program = "greater(2, 1)" if isinstance(row["e"], str) else str(row["e"])
        turn = gold_turn(program, row["e"], row.get("printed"))
        found = measured_response(turn, json.dumps([{"tool": "extract", "value": row["p"]}]))
        names = {"n": "numerical", "s": "soft", "u": "unit_agnostic", "g": "sign_agnostic", "a": "general"}
        assert {key: found[f"{name}_match"] for key, name in names.items()} == {key: key in held for key in names}
        assert found["exact_match"] is row.get("exact")


@given(NUMBERS, EXPECTED, st.booleans())
def test_the_looser_match_holds_wherever_the_stricter_does(predicted: float, expected: float, percent: bool) -> None:
    held, _ = _matches(predicted, percent, expected, None)
    if "s" in held:
        assert set("nuga") <= set(held)
    if "n" in held:
        assert "a" in held


@given(st.sampled_from([nan, inf, -inf, None, "yes"]), EXPECTED)
def test_what_is_no_finite_number_matches_no_number(predicted: Any, expected: float) -> None:
    assert _matches(predicted, False, expected, "5") == ("", False)


@given(st.integers(1, 10**9), st.integers(0, 4), st.booleans())
def test_what_is_exact_is_within_half_a_unit_of_the_printed_answer(units: int, decimals: int, percent: bool) -> None:
    shown = units / 10**decimals
    printed = f"{shown:.{decimals}f}{'%' if percent else ''}"
    value = shown / 100 if percent else shown
    number = printed_number(printed)
    assert exact_match(value, value, printed, number) is True
    unit = 10.0**-decimals / (100 if percent else 1)
    assert exact_match(value + 0.4 * unit, value, printed, number) is True
    assert exact_match(value + 0.6 * unit, value, printed, number) is False
    assert exact_match(value - 0.6 * unit, value, printed, number) is False


BROKEN = '{"plan": [{"tool": "compute", "operation": "growth", "args": [1, 2]}]}'
CUT = '{"plan": [{"tool": '
RIGHT = '{"plan": [{"tool": "extract", "value": 412.5}]}'
CASE = case_of(gold_turn("412.5", printed="412.5"))
TURN = CASE.turns[0]


def _attempt(text: str, number: int = 0) -> Attempt:
    return attempt_at(CASE, TURN, text, number=number)


@pytest.mark.parametrize("row", golden("finqa_recovery.yaml"), ids=lambda row: str(row["outcomes"]))
def test_golden_recovery(row: dict[str, Any]) -> None:
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


@pytest.mark.parametrize("row", golden("finqa_numbers.yaml"), ids=lambda row: repr(row["text"]))
def test_golden_numbers(row: dict[str, Any]) -> None:
    number = printed_number(row["text"])
    if row["value"] is None:
        assert number is None
    else:
        assert number is not None
        assert number.value == pytest.approx(row["value"], rel=1e-12)
        assert (number.percent, number.decimals) == (row.get("percent", False), row.get("decimals", 0))


@given(st.from_regex(r"-?[0-9]{1,40}(\.[0-9]{1,30})?", fullmatch=True))
def test_plain_numbers_are_read_as_by_the_whole_grammar(text: str) -> None:
    found, number = only_number(text), printed_number(text)
    assert found is not None
    assert number is not None
    assert repr(number) == repr(as_printed(found, negative=False))  # also -0.0


@given(st.text(max_size=90))
def test_any_text_gives_a_finite_number_or_none(text: str) -> None:
    number = printed_number(text)
    assert number is None or isfinite(number.value)


@pytest.mark.parametrize("text", ["1" * 81, "(" * 50, "1," * 40, "-" * 80, "9" * 60 + "," * 10])
def test_hostile_texts_are_no_numbers(text: str) -> None:
    assert printed_number(text) is None


@given(st.floats(-1e9, 1e9, allow_nan=False).map(lambda value: round(value, 4)))
def test_what_is_written_for_people_reads_back(value: float) -> None:
    number = printed_number(number_text(value))
    assert number is not None
    assert number.value == pytest.approx(value, rel=1e-9)


@given(st.integers(-(10**9), 10**9))
def test_accounting_and_thousands(value: int) -> None:
    text = f"({-value:,})" if value < 0 else f"$ {value:,}"
    assert printed_number(text) == Number(float(value))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-0.0, "0"), (5.0, "5"), (0.1118598382749, "0.1118598383"), (37754280.76, "37754280.76"),
     (12_000_000.0, "12000000"), (1e15, "1000000000000000"), (0.00001234, "0.00001234"), (-2.5, "-2.5"),
     (float("inf"), "inf")],
)  # fmt: skip
def test_number_text(value: float, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.parametrize(
    ("value", "decimals", "units"),
    [(11.25, 1, 113), (-11.25, 1, -113), (2.675, 2, 268), (1.005, 2, 101), (0.5, 0, 1), (1.4999, 0, 1), (2.5, 0, 3),
     (37754280.755, 2, 3775428076)],
)  # fmt: skip
def test_round_half_up(value: float, decimals: int, units: int) -> None:
    assert round_half_up(value, decimals) == units


def test_rounding_beyond_floats_is_none() -> None:
    assert round_half_up(1e300, 20) is None


def test_normalised_text() -> None:
    assert normalised_text(" Yes. ") == normalised_text("YES!") == "yes"


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("", set()),
        ("no numbers here.", set()),
        ("It was 1,234.5 in 2021. Then 7.", {1234.5, 2021, 7}),
        ("$(3.2)m, -4% and 007", {3.2, 4, 7}),
        ("page12of30", {12, 30}),
        ("12. 13.\n14.", {12, 13, 14}),
        ("a share of .35 ", {0.35, 35}),
        ("up to .35.", {0.35, 35}),
        ("see note 1.2.3", {1.2, 3}),
        ("5... or so", {5}),
        ("€ 12.5 – up from “11”", {12.5, 11}),
        ("\u0663\u0664 of \uff11\uff12", {34, 12}),  # 34 in Arabic digits, 12 in full-width ones
        ("half a pair: \ud800 8", {8}),
    ],
)
def test_numbers_are_runs_of_digits(text: str, numbers: set[float]) -> None:
    assert numbers_in(text) == numbers


@given(st.text(st.sampled_from("0123.., \n-a$%\u00e9\u0663\ud800"), max_size=12))
def test_they_are_what_a_search_for_digits_finds(text: str) -> None:
    text = text.replace(",", "")
    wholes = {float(match[0]) for match in re.finditer(r"\d+(?:\.\d+)?", text)}
    parts = {float(match[0]) for match in re.finditer(r"(?<!\d)\.\d+", text)}
    assert numbers_in(text) == wholes | parts
