"""Cards: every kind is drawn, says by more than a colour what is marked, and escapes what is in it."""

import re
from typing import get_args

import pytest

from eval_pipeline.tracks.cards import (
    MEANINGS,
    BesideCard,
    Card,
    Cell,
    CodeCard,
    DifferenceCard,
    FactsCard,
    Mark,
    TableCard,
    TextCard,
)
from eval_pipeline.view.rendering import render, static_file
from eval_pipeline_tests.view.homes import HOSTILE_TEXTS
from eval_pipeline_tests.view.pages import Parts, is_harmless

RIGHT, WRONG = Cell("12", Mark.RIGHT), Cell("13", Mark.WRONG, "should be 12")
CARDS: dict[str, Card] = {
    "table": TableCard("T", ["name", "n"], [["a", RIGHT], ["b", WRONG]], "A remark.", row_headers=True, left_out=3),
    "code": CodeCard("T", "x = 1\ny = 2", "python", marked={2: Mark.WRONG}),
    "text": TextCard("T", ["Sales of ", RIGHT, " fell."]),
    "difference": DifferenceCard("T", "Gold", "add(1, 2)", "Answer", "add(1, 3)"),
    "facts": FactsCard("T", [("value", RIGHT), ("unit", "percent")]),
    "beside": BesideCard("T", [TableCard("Expected", ["n"], [["1"]]), FactsCard("Got", [("n", WRONG)])]),
}


def drawn(*cards: Card) -> str:
    return render("parts/cards.html.j2", its={"cards": cards, "missing": ""})


def test_there_is_a_card_of_every_kind() -> None:
    assert {kind.kind for kind in map(_resolved, get_args(Card))} == set(CARDS)
    assert set(MEANINGS) == set(Mark)


def _resolved(kind: type) -> type:
    return kind if isinstance(kind, type) else BesideCard


@pytest.mark.parametrize("kind", CARDS)
def test_each_kind_is_drawn(kind: str) -> None:
    html = drawn(CARDS[kind])
    is_harmless(html)
    text = Parts(html).text
    assert text.startswith("T ")
    expected = {
        "table": "T A remark. T name n a 12 (right) b 13 (wrong) should be 12 3 further rows",
        "code": "T python x = 1 y = 2 (wrong) wrong",
        "text": "T Sales of 12 (right) fell. right",
        "difference": "T Gold add(1, 2 ) Answer add(1, 3 )",
        "facts": "T value 12 (right) unit percent right",
        "beside": "T Expected Expected n 1 Got n 13 (wrong) should be 12 wrong",
    }
    assert text.startswith(expected[kind])


def test_a_table_has_headers_with_their_scope() -> None:
    found = Parts(drawn(CARDS["table"])).elements
    assert [a["scope"] for tag, a in found if tag == "th"] == ["col", "col", "row", "row"]


def test_a_long_table_is_cut_and_says_so() -> None:
    text = Parts(drawn(TableCard("T", ["n"], [[str(n)] for n in range(1000)], left_out=5))).text
    assert "805 further rows" in text
    assert " 199 " in text
    assert " 200 " not in text


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_no_card_lets_anything_out(text: str) -> None:
    cell = Cell(text, Mark.GOLD, text)
    html = drawn(
        TableCard(text[:99], [text, cell], [[text, cell]], text),
        CodeCard(text[:99], text, text[:99], text, marked={1: Mark.MISSING}),
        TextCard(text[:99], [text, cell], text),
        DifferenceCard(text[:99], text[:99], text, text[:99], text[::-1], text),
        FactsCard(text[:99], [(text, cell)], text),
        BesideCard(text[:99], [TextCard(text, [cell])], text),
    )
    is_harmless(html)
    assert len(html) < 1_000_000


def test_every_mark_has_a_look_of_its_own() -> None:
    style = static_file("style.css").decode()
    looks = [re.search(rf"\.m-{mark} {{ (.*?) }}", style) for mark in Mark]
    assert all(looks)
