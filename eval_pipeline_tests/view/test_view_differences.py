"""Differences of two texts, and the line of a series."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.view.differences import Piece, differences
from eval_pipeline.view.sparkline import HEIGHT, WIDTH, sparkline

TEXTS = st.text("ab 1.,\n", max_size=40)


@given(TEXTS, TEXTS)
def test_the_pieces_make_up_both_texts(before: str, after: str) -> None:
    pieces = differences(before, after)
    assert "".join(piece.text for piece in pieces if piece.kind != "added") == before
    assert "".join(piece.text for piece in pieces if piece.kind != "removed") == after
    assert (before == after) == all(piece.kind == "same" for piece in pieces)


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


def test_long_texts_are_compared_by_lines_and_the_longest_not_at_all() -> None:
    before = "some words of a line\n" * 1000
    assert differences(before, before + "more\n") == [Piece("same", before), Piece("added", "more\n")]
    longest = "".join(f"{n}\n" for n in range(9000))
    assert [piece.kind for piece in differences(longest, longest + "x")] == ["removed", "added"]


@given(st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=30))
def test_a_line_stays_in_its_picture(values: list[float | None]) -> None:
    drawn = str(sparkline(values, "<words>"))
    points = [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", drawn)]
    assert len(points) == len([value for value in values if value is not None])
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)
    assert "<words>" not in drawn


def test_a_line_rises_with_accuracy_and_breaks_where_there_is_none() -> None:
    drawn = str(sparkline([0.5, 0.9, None, 0.7], "x"))
    assert drawn.count("<polyline") == 2
    ((_, low), (_, high)) = [pair.split(",") for pair in re.findall(r'points="([^"]*)"', drawn)[0].split()]
    assert float(low) > float(high), "the y axis points down"
    assert "<" not in str(sparkline([None], "x"))
