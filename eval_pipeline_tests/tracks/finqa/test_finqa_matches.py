import json
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.numbers import parse_number
from eval_pipeline.tracks.finqa.metrics.exact_match import exact_match
from eval_pipeline.tracks.finqa.metrics.general_match import general_match
from eval_pipeline.tracks.finqa.metrics.numerical_match import numerical_match
from eval_pipeline.tracks.finqa.metrics.sign_agnostic_match import sign_agnostic_match
from eval_pipeline.tracks.finqa.metrics.soft_match import soft_match
from eval_pipeline.tracks.finqa.metrics.unit_agnostic_match import unit_agnostic_match
from eval_pipeline_tests.goldens import golden

from .helpers import gold_turn, measured_response

NUMBERS = st.one_of(st.floats(-1e6, 1e6), st.floats(-1, 1), st.sampled_from([0.0, 1e308, inf, -inf, nan]))
EXPECTED = st.one_of(st.floats(-1e6, 1e6), st.floats(-1, 1), st.just(0.0))


def _matches(predicted: Any, percent: bool, expected: float | str, printed: str | None) -> tuple[str, bool | None]:
    number = None if printed is None else parse_number(printed)
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
    if isinstance(predicted, str) and (number := parse_number(predicted)) is not None:
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
    number = parse_number(printed)
    assert exact_match(value, value, printed, number) is True
    unit = 10.0**-decimals / (100 if percent else 1)
    assert exact_match(value + 0.4 * unit, value, printed, number) is True
    assert exact_match(value + 0.6 * unit, value, printed, number) is False
    assert exact_match(value - 0.6 * unit, value, printed, number) is False
