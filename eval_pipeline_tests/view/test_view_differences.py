"""Differences of two texts, and the line of a series."""

import re
from collections import Counter
from itertools import product
from typing import get_args

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.tracks.shown.cards import (
    MEANINGS,
    BesideCard,
    Card,
    CardCell,
    CodeCard,
    DifferenceCard,
    FactsCard,
    Mark,
    TableCard,
    TextCard,
    TimelineCard,
    TimelineStep,
)
from eval_pipeline.view.comparing.agreement import (
    ALIKE,
    ALL_RIGHT,
    DIFFERENTLY,
    NOT_ANSWERED,
    NOT_SCORED,
    REGRESSIONS,
    is_code,
    is_regression,
    words,
)
from eval_pipeline.view.comparing.found import row_differences
from eval_pipeline.view.comparing.sql import RANK
from eval_pipeline.view.drawing import Piece, differences, passage, render, static_file
from eval_pipeline_tests.view.homes import HOSTILE_TEXTS
from eval_pipeline_tests.view.pages import Parts, is_harmless

TEXTS = st.text("ab 1.,\n", max_size=40)


@given(TEXTS, TEXTS)
def test_the_pieces_make_up_both_texts(before: str, after: str) -> None:
    pieces = differences(before, after)
    assert "".join(piece.text for piece in pieces if piece.kind != "added") == before
    assert "".join(piece.text for piece in pieces if piece.kind != "removed") == after
    assert (before == after) == all(piece.kind == "same" for piece in pieces)


LINES = st.lists(st.sampled_from("abc"), max_size=8).map(lambda lines: "".join(f"{line}\n" for line in lines))


@given(LINES, LINES)
def test_a_passage_leaves_out_only_lines_that_both_have(before: str, after: str) -> None:
    found = passage(before, after)
    assert (found is None) == (before == after)
    if found is None:
        return
    old = "".join(piece.text for piece in found.pieces if piece.kind != "added")
    new = "".join(piece.text for piece in found.pieces if piece.kind != "removed")
    splits = [(before[:n], before[n + len(old) :]) for n in range(len(before) + 1) if before[n:].startswith(old)]
    left_out = [(bool(head), bool(tail)) for head, tail in splits if head + new + tail == after]
    assert (found.before, found.after) in left_out


def test_long_texts_are_compared_by_lines_and_shown_about_the_difference() -> None:
    before, after = ("same\n" * 5000 + f"the {word}\n" + "end\n" * 5000 for word in ("earlier", "newer"))
    found = passage(before, after, 100)
    assert found.pieces == [
        Piece("same", "same\nthe "),
        Piece("removed", "earlier"),
        Piece("added", "newer"),
        Piece("same", "\nend\n"),
    ]
    assert (found.before, found.after) == (True, True)
    before = "some words of a line\n" * 1000
    assert differences(before, before + "more\n") == [Piece("same", before), Piece("added", "more\n")]
    longest = "".join(f"{n}\n" for n in range(9000))
    assert [piece.kind for piece in differences(longest, longest + "x")] == ["removed", "added"]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a cat", "a dog", [Piece("same", "a "), Piece("removed", "cat"), Piece("added", "dog")]),
        ("12", "123", [Piece("removed", "12"), Piece("added", "123")]),
        ("0.24622", "24.622", [Piece("removed", "0.24622"), Piece("added", "24.622")]),
        ("1,846.2", "-1,846", [Piece("removed", "1,846.2"), Piece("added", "-1,846")]),
        ("1.5e-05 x", "1.5e-06 x", [Piece("removed", "1.5e-05"), Piece("added", "1.5e-06"), Piece("same", " x")]),
        ("add(1)", "add(1), x", [Piece("same", "add(1)"), Piece("added", ", x")]),
    ],
)
def test_words_are_compared_whole(before: str, after: str, expected: list[Piece]) -> None:
    assert differences(before, after) == expected


def test_regressions_come_first_the_worst_of_them_before_all() -> None:
    patterns = ["".join(found) for found in product("rw", repeat=3) if len(set(found)) > 1]
    groups = ", ".join(f"('{code}')" for code in (*patterns, ALL_RIGHT, ALIKE, DIFFERENTLY, NOT_ANSWERED, NOT_SCORED))
    found = duckdb.sql(f"SELECT code FROM (VALUES {groups}) AS g(code) ORDER BY {RANK}, code").fetchall()
    codes = [code for (code,) in found]
    assert codes == [
        "rww", "rrw", "rwr", NOT_ANSWERED, "wrw", "wwr", "wrr", DIFFERENTLY, ALIKE, NOT_SCORED, ALL_RIGHT,
    ]  # fmt: skip
    assert [code for code in codes if is_regression(code)] == ["rww", "rrw", "rwr"]


@pytest.mark.parametrize(
    ("code", "sides", "said"),
    [
        ("rw", 2, "Only B wrong"),
        ("wr", 2, "Only A wrong"),
        ("rrw", 3, "Only C wrong"),
        ("wwr", 3, "Only C right"),
        ("wrrw", 4, "Only A and D wrong"),
        (REGRESSIONS, 2, "Only B wrong"),
        (REGRESSIONS, 3, "A right, another wrong"),
    ],
)
def test_a_group_is_said_in_words(code: str, sides: int, said: str) -> None:
    assert words(code, sides) == said
    assert is_code(code, sides)


@pytest.mark.parametrize("text", ["rr", "ww", "r", "rwr", "nr", "'; DROP TABLE x", "RW", ""])
def test_only_groups_are_groups(text: str) -> None:
    assert not is_code(text, 2)


ROWS = st.lists(st.lists(st.sampled_from([None, 1, 1.5, "a", "1", True]), min_size=1, max_size=2), max_size=8)


@given(ROWS, ROWS)
def test_rows_are_counted_as_often_as_they_are_there(first: list, second: list) -> None:
    found = row_differences({"columns": ["x"], "rows": first}, {"columns": ["x"], "rows": second})
    a, b = (Counter(map(tuple, rows)) for rows in (first, second))  # true is 1, as in databases
    assert Counter(map(tuple, found.removed)) == a - b
    assert Counter(map(tuple, found.added)) == b - a
    assert (found.only_first, found.only_second, found.common) == ((a - b).total(), (b - a).total(), (a & b).total())
    assert found.is_same == (a == b)
    assert found.reordered == (a == b and first != second)


@pytest.mark.parametrize("other", [None, 7, "x", {"columns": ["x"]}, {"columns": "x", "rows": []}, {"rows": [[1]]}])
def test_what_is_no_table_has_no_rows(other: object) -> None:
    assert row_differences({"columns": [], "rows": []}, other) is None
    assert row_differences(other, {"columns": [], "rows": []}) is None


def test_many_rows_are_counted_and_some_of_them_shown() -> None:
    found = row_differences({"columns": ["n"], "rows": []}, {"columns": ["n"], "rows": [[n] for n in range(50)]})
    assert (found.only_second, len(found.added)) == (50, 12)


RIGHT, WRONG = CardCell("12", Mark.RIGHT), CardCell("13", Mark.WRONG, "should be 12")
CARDS: dict[str, Card] = {
    "table": TableCard("T", ["name", "n"], [["a", RIGHT], ["b", WRONG]], "A remark.", row_headers=True, left_out=3),
    "code": CodeCard("T", "x = 1\ny = 2", "python", marked={2: Mark.WRONG}),
    "text": TextCard("T", ["Sales of ", RIGHT, " fell."]),
    "difference": DifferenceCard("T", "Gold", "add(1, 2)", "Answer", "add(1, 3)"),
    "facts": FactsCard("T", [("value", RIGHT), ("unit", "percent")]),
    "timeline": TimelineCard(
        "T", [TimelineStep(0, "sql", "SELECT 12", [["n"], ["12"]]), TimelineStep(1, "answer", "13")]
    ),
    "beside": BesideCard("T", [TableCard("Expected", ["n"], [["1"]]), FactsCard("Got", [("n", WRONG)])]),
}


def drawn(*cards: Card) -> str:
    return render("parts/cards.html.j2", its={"cards": cards, "missing": ""})


def test_there_is_a_card_of_every_kind_and_a_look_of_every_mark() -> None:
    assert {getattr(kind, "kind", BesideCard.kind) for kind in get_args(Card)} == set(CARDS)
    assert set(MEANINGS) == set(Mark)
    style = static_file("style.css").decode()
    looks = [re.search(rf"\.m-{mark} {{ (.*?) }}", style) for mark in Mark]
    assert all(looks)


@pytest.mark.parametrize("kind", CARDS)
def test_each_kind_is_drawn(kind: str) -> None:
    html = drawn(CARDS[kind])
    is_harmless(html)
    text = Parts(html).text
    assert text.startswith("T ")
    expected = {
        "table": "T A remark. T name n a 12 (right) b 13 (wrong) should be 12 2 of 5 rows shown",
        "code": "T python x = 1 y = 2 (wrong) wrong",
        "text": "T Sales of 12 (right) fell. right",
        "difference": "T Gold add(1, 2 ) Answer add(1, 3 )",
        "facts": "T value 12 (right) unit percent right",
        "timeline": "T Steps all 2 sql 1 answer 1 0 sql SELECT 12 n 12 1 answer 13",
        "beside": "T Expected Expected n 1 Got n 13 (wrong) should be 12 wrong",
    }
    assert text.startswith(expected[kind])


def test_tables_have_headers_with_their_scope_and_are_cut_and_white_space_is_no_difference() -> None:
    found = Parts(drawn(CARDS["table"])).elements
    assert [a["scope"] for tag, a in found if tag == "th"] == ["col", "col", "row", "row"]
    text = Parts(drawn(TableCard("T", ["n"], [[str(n)] for n in range(1000)], left_out=5))).text
    assert " 198 199 200 of 1,005 rows shown" in text
    html = drawn(DifferenceCard("T", "Gold", "SELECT a\n  FROM t", "Answer", "SELECT a FROM s\n"))
    assert [tag for tag, _ in Parts(html).elements if tag in ("del", "ins")] == ["del", "ins"]
    assert "SELECT a\n  FROM <del>t</del></pre>" in html
    assert "SELECT a FROM <ins>s\n</ins></pre>" in html


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_no_card_lets_anything_out(text: str) -> None:
    cell = CardCell(text, Mark.GOLD, text)
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
