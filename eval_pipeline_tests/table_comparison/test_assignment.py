"""Rows matched to have the most cells in common: against scipy, and by hand."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.table_comparison.alignment.assignment import Bag, most_in_common

CELLS = st.lists(st.sampled_from("abcd"), max_size=4)
TABLES = st.lists(CELLS, max_size=7)


def bags(rows: list[list[str]]) -> list[Bag]:
    return [frozenset(Counter(row).items()) for row in rows]


@given(TABLES, TABLES)
def test_is_the_assignment_of_scipy(rows: list[list[str]], others: list[list[str]]) -> None:
    from scipy.optimize import linear_sum_assignment

    shared = [[(Counter(row) & Counter(other)).total() for other in others] for row in rows]
    expected = 0
    if rows and others:
        chosen = linear_sum_assignment(shared, maximize=True)
        expected = sum(shared[row][column] for row, column in zip(*chosen, strict=True))
    assert most_in_common(bags(rows), bags(others)) == expected


@pytest.mark.parametrize(
    ("rows", "others", "expected"),
    [
        (["ab", "a"], ["ab", "b"], 2),  # the first with the first: 2 and 0; crosswise: 1 and 1
        (["ab", "ac"], ["ab", "b"], 2),
        (["ab", "ac", "a"], ["a", "ac"], 3),
        (["abc", "ab"], ["ab", "abc"], 5),  # crosswise; in order 2 and 2
        (["aab", "aa"], ["aa", "ab"], 4),  # the second `a` counts once for each row that has two
        (["ab"], ["cd"], 0),
    ],
)
def test_by_hand(rows: list[str], others: list[str], expected: int) -> None:
    assert most_in_common(bags([*map(list, rows)]), bags([*map(list, others)])) == expected
    assert most_in_common(bags([*map(list, others)]), bags([*map(list, rows)])) == expected
