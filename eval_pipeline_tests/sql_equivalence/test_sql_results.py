"""Comparing results: golden cases, and what holds for any of them."""

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.sql_equivalence.results import ColumnMatch, Result, same_rows, soft_f1
from eval_pipeline_tests.goldens import golden

GOLDEN = golden("sql_results.yaml")


def result(rows, ties=None):
    rows = [tuple(row) for row in rows]
    width = len(rows[0]) if rows else 1
    return Result(tuple(f"c{place}" for place in range(width)), rows, tuple(ties) if ties else None)


@pytest.mark.parametrize("case", GOLDEN, ids=[case["source"] for case in GOLDEN])
def test_results_are_the_same_where_the_engine_says_so(case):
    generated, expected = result(case["g"]), result(case["e"], case.get("ties"))
    assert ColumnMatch().agrees(generated, expected) is case["same"]
    if "f1" in case:
        assert soft_f1(generated.rows, expected.rows) == pytest.approx(case["f1"], abs=1e-4)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Decimal("1.50"), 1.5, True),
        (date(2024, 1, 2), datetime(2024, 1, 2), True),
        (date(2024, 1, 2), datetime(2024, 1, 2, 3), False),
        (datetime(2024, 1, 2, tzinfo=UTC), datetime(2024, 1, 2), True),
        (float("nan"), float("nan"), True),
        (float("nan"), None, False),
        (float("inf"), float("inf"), True),
        (float("inf"), float("-inf"), False),
        ([1, None], [1.0, None], True),
        ({"a": 1}, {"a": 2}, False),
        (b"a", b"a", True),
        (2**53 + 1, 2**53, True),  # a float cannot tell them apart, and 1e-6 is more
    ],
)
def test_values_of_every_type_are_compared(one, other, same):
    assert same_rows([(one,)], [(other,)]) is same


def test_one_order_of_columns_has_to_fit_every_database():
    match = ColumnMatch()
    assert match.agrees(result([[1, 2]]), result([[2, 1]]))
    assert match.order == (1, 0)
    assert not match.agrees(result([[3, 4]]), result([[3, 4]]))
    assert match.agrees(result([[5, 6]]), result([[6, 5]]))


def test_an_order_that_fitted_by_chance_is_given_up_for_one_that_fits_all():
    match = ColumnMatch()
    assert match.agrees(result([[1, 1]]), result([[1, 1]]))
    assert match.agrees(result([[1, 2]]), result([[2, 1]]))
    assert match.order == (1, 0)


CELLS = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from(["a", "b", ""]), st.sampled_from([0.1, 0.25, 1e9]))
TABLES = st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[CELLS] * width), max_size=8))


@given(TABLES, st.randoms(use_true_random=False))
def test_rows_and_columns_in_another_order_are_the_same(rows, rng: Random):
    order = list(range(len(rows[0]))) if rows else [0]
    rng.shuffle(order)
    other = [tuple(row[place] for place in order) for row in rows]
    rng.shuffle(other)
    assert ColumnMatch().agrees(result(other), result(rows))
    assert soft_f1(other, rows) == pytest.approx(1.0)


@given(TABLES, TABLES)
def test_sameness_is_equality_of_multisets_in_either_direction(rows, others):
    if not rows or not others or len(rows[0]) != len(others[0]):
        return
    assert same_rows(rows, others) == same_rows(others, rows)
    assert same_rows(rows, others) == (Counter(rows) == Counter(others))
    assert 0.0 <= soft_f1(rows, others) <= 1.0
    assert soft_f1(rows, others) == pytest.approx(soft_f1(others, rows))
