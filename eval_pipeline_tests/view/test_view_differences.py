"""Differences of two texts, and the line of a series."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.view.differences import Piece, differences, passage
from eval_pipeline.view.sparkline import HEIGHT, WIDTH, sparkline

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


def test_a_passage_of_long_texts_is_the_lines_about_the_difference() -> None:
    before, after = ("same\n" * 5000 + f"the {word}\n" + "end\n" * 5000 for word in ("earlier", "newer"))
    found = passage(before, after, 100)
    assert found.pieces == [
        Piece("same", "same\nthe "),
        Piece("removed", "earlier"),
        Piece("added", "newer"),
        Piece("same", "\nend\n"),
    ]
    assert (found.before, found.after) == (True, True)


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
