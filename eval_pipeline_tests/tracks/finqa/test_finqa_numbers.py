import re
from math import isfinite
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.numbers import Number, normalised_text, number_text, parse_number, round_half_up
from eval_pipeline.tracks.finqa.document import numbers_in
from eval_pipeline_tests.goldens import golden


@pytest.mark.parametrize("row", golden("finqa_numbers.yaml"), ids=lambda row: repr(row["text"]))
def test_golden(row: dict[str, Any]) -> None:
    number = parse_number(row["text"])
    if row["value"] is None:
        assert number is None
    else:
        assert number is not None
        assert number.value == pytest.approx(row["value"], rel=1e-12)
        assert (number.percent, number.decimals) == (row.get("percent", False), row.get("decimals", 0))


@given(st.text(max_size=90))
def test_any_text_gives_a_finite_number_or_none(text: str) -> None:
    number = parse_number(text)
    assert number is None or isfinite(number.value)


@pytest.mark.parametrize("text", ["1" * 81, "(" * 50, "1," * 40, "-" * 80, "9" * 60 + "," * 10])
def test_hostile_texts_are_no_numbers(text: str) -> None:
    assert parse_number(text) is None


@given(st.floats(-1e9, 1e9, allow_nan=False).map(lambda value: round(value, 4)))
def test_what_is_written_for_people_reads_back(value: float) -> None:
    number = parse_number(number_text(value))
    assert number is not None
    assert number.value == pytest.approx(value, rel=1e-9)


@given(st.integers(-(10**9), 10**9))
def test_accounting_and_thousands(value: int) -> None:
    text = f"({-value:,})" if value < 0 else f"$ {value:,}"
    assert parse_number(text) == Number(float(value))


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
