"""The numbers of a page, which the validator looks operands up in."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.tracks.finqa.document import numbers_in


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
