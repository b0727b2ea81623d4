"""Groups of turns by who was right, and rows that queries returned: pure rules."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.ids import canonical_json
from eval_pipeline.view.comparing.agreement import (
    ALIKE,
    ALL_RIGHT,
    DIFFERENTLY,
    NOT_ANSWERED,
    NOT_SCORED,
    REGRESSIONS,
    is_code,
    is_regression,
    rank,
    words,
)
from eval_pipeline.view.comparing.row_differences import row_differences


def test_regressions_come_first_the_worst_of_them_before_all() -> None:
    patterns = ["".join(found) for found in product("rw", repeat=3) if len(set(found)) > 1]
    codes = sorted([*patterns, ALL_RIGHT, ALIKE, DIFFERENTLY, NOT_ANSWERED, NOT_SCORED], key=lambda c: (rank(c), c))
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
    a, b = (Counter(map(canonical_json, rows)) for rows in (first, second))
    assert Counter(map(canonical_json, found.removed)) == a - b
    assert Counter(map(canonical_json, found.added)) == b - a
    assert (found.only_first, found.only_second, found.common) == ((a - b).total(), (b - a).total(), (a & b).total())
    assert found.is_same == (a == b)
    assert found.reordered == (a == b and list(map(canonical_json, first)) != list(map(canonical_json, second)))


@pytest.mark.parametrize("other", [None, 7, "x", {"columns": ["x"]}, {"columns": "x", "rows": []}, {"rows": [[1]]}])
def test_what_is_no_table_has_no_rows(other: object) -> None:
    assert row_differences({"columns": [], "rows": []}, other) is None
    assert row_differences(other, {"columns": [], "rows": []}) is None


def test_many_rows_are_counted_and_some_of_them_shown() -> None:
    found = row_differences({"columns": ["n"], "rows": []}, {"columns": ["n"], "rows": [[n] for n in range(50)]})
    assert (found.only_second, len(found.added)) == (50, 12)
