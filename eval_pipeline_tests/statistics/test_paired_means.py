"""Paired tests of graded metrics: against scipy, exact enumeration, and under no difference."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from eval_pipeline.statistics import paired_means


def test_with_a_turn_a_conversation_it_is_the_paired_t_test() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.uniform(0, 0.8, 40), rng.uniform(0.1, 1, 40)
    found = paired_means(a, b, np.arange(40))
    theirs = stats.ttest_rel(b, a)
    assert found.p_value == pytest.approx(theirs.pvalue, rel=1e-9)
    ends = theirs.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
    assert (found.first, found.second, found.n, found.clusters) == (
        pytest.approx(a.mean()),
        pytest.approx(b.mean()),
        40,
        40,
    )


def test_flips_of_conversations_come_close_to_all_flips() -> None:
    differences = np.array([0.5, 0.25, -0.1, 0.4, 0.3, 0.2, 0.0, 0.35])
    clusters = np.array([0, 0, 1, 2, 3, 4, 5, 6])
    sums = np.bincount(clusters, weights=differences)
    all_flips = [abs(np.dot(signs, sums)) >= abs(sums.sum()) - 1e-9 for signs in product((-1, 1), repeat=sums.size)]
    found = paired_means(np.zeros(8), differences, clusters)
    assert found.p_flips == pytest.approx(np.mean(all_flips), abs=0.01)
    assert found.p_decisive == max(found.p_value or 0, found.p_flips or 0)


def test_repeating_turns_of_a_conversation_gives_no_certainty() -> None:
    rng = np.random.default_rng(5)
    b = rng.uniform(-0.2, 0.4, 12)
    once = paired_means(np.zeros(12), b, np.arange(12))
    often = paired_means(np.zeros(120), np.repeat(b, 10), np.repeat(np.arange(12), 10))
    assert (often.se, often.p_value, often.p_flips) == pytest.approx((once.se, once.p_value, once.p_flips))


def test_without_a_difference_it_seldom_finds_one() -> None:
    rng = np.random.default_rng(7)
    alarms = 0
    for _ in range(100):
        of_case = rng.uniform(0, 0.6, 15)
        a, b = (np.repeat(of_case, 2) + rng.uniform(0, 0.4, 30) for _ in range(2))
        p = paired_means(a, b, np.repeat(np.arange(15), 2)).p_decisive
        alarms += p is not None and p < 0.05
    assert alarms <= 12


def test_values_that_one_lacks_are_left_out_and_no_test_has_a_reason() -> None:
    found = paired_means([0.5, np.nan, 1.0], [1.0, 1.0, np.nan], [0, 1, 2])
    assert (found.n, found.difference, found.p_value) == (1, 0.5, None)
    assert found.reason
    assert paired_means([np.nan], [1.0], [0]).reason == "no common turn has a value for both"
    same = paired_means([0.5, 0.5], [0.5, 0.5], [0, 1])
    assert (same.p_value, same.p_flips) == (1.0, 1.0)
    assert paired_means(np.zeros(9), np.full(9, 0.25), np.arange(9)).p_decisive == pytest.approx(2 / 2**9, abs=0.003)
