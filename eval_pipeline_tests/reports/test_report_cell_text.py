"""Texts made fit for cells."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.reports.excel.text import MOST, cell_text, looks_like_formula

_LEGAL = re.compile("[\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_any_text_becomes_one_that_xml_can_hold(text: str) -> None:
    assert _LEGAL.fullmatch(cell_text(text))


@given(st.text(alphabet=string.printable.replace("\r", "").replace("\x0b", "").replace("\x0c", "").replace("_", "")))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert cell_text(text) == text


@given(st.text(alphabet="a\U0001f600_x0F\n", min_size=0, max_size=30), st.integers(0, 5000))
def test_no_text_is_longer_than_a_cell_holds(text: str, times: int) -> None:
    assert len(cell_text(text * times).encode("utf-16-le")) // 2 <= MOST


@given(st.text(alphabet="_x0041F5", max_size=40))
def test_what_excel_would_decode_is_escaped(text: str) -> None:
    decoded = re.sub(r"_x([0-9A-Fa-f]{4})_", lambda match: chr(int(match[1], 16)), cell_text(text))
    assert decoded == text


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\n=1", "=", "=cmd|' /C calc'!A0"])
def test_texts_like_formulas_are_known(text: str) -> None:
    assert looks_like_formula(text)


@pytest.mark.parametrize("text", ["", "1", "a=b", " =1", "#0", "'=1"])
def test_other_texts_are_not(text: str) -> None:
    assert not looks_like_formula(text)


def test_carriage_returns_become_line_ends() -> None:
    assert cell_text("a\r\nb\rc") == "a\nb\nc"
    assert looks_like_formula(cell_text("\r=1"))


def test_a_cut_is_noted_and_no_pair_of_surrogates_is_broken() -> None:
    cut = cell_text("\U0001f600" * 20_000)
    assert cut.endswith(" … [cut: 40,000 characters in all; .parquet and .csv hold the whole text]")
    assert set(cut.split(" ")[0]) == {"\U0001f600"}


def test_a_text_of_just_the_most_is_not_cut() -> None:
    assert cell_text("a" * MOST) == "a" * MOST
    assert cell_text("a" * (MOST + 1)) != "a" * (MOST + 1)


def test_a_cut_through_an_escape_leaves_no_half_of_it() -> None:
    for lead in range(8):
        kept = cell_text("b" * lead + "_x0041_" * 6000).partition(" … ")[0]
        shown = kept.replace("_x005F_", "_")
        assert ("b" * lead + "_x0041_" * 6000).startswith(shown)
        assert len(shown) > 16_000
