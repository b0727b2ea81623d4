"""The paired difference: against references, and what must hold for any data."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from eval_pipeline.statistics.cost import pareto_front
from eval_pipeline.statistics.intervals import estimate_mean
from eval_pipeline.statistics.pairs.paired import FEW_CHANGED, PairedDifference, holm, mcnemar_exact, paired_difference
from eval_pipeline.statistics.pairs.paired_means import paired_means

verdict = st.sampled_from([0.0, 1.0, math.nan])
turns = st.lists(st.tuples(verdict, verdict, st.integers(0, 12)), max_size=60)
net_gains = st.lists(st.integers(-4, 4), max_size=9)


def compared(rows: list[tuple[float, float, int]]) -> PairedDifference:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    return paired_difference(columns[0], columns[1], np.array(columns[2], dtype=np.int64))


@given(net_gains)
def test_the_exact_test_counts_assignments_of_signs(net: list[int]) -> None:
    changed = [abs(step) for step in net if step]
    sums = [
        abs(sum(s * c for s, c in zip(signs, changed, strict=True))) for signs in product((-1, 1), repeat=len(changed))
    ]
    expected = sum(found >= abs(sum(net)) for found in sums) / len(sums)
    assert mcnemar_exact(np.array(net, dtype=np.int64)) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=25)
@given(st.lists(st.integers(-5, 5), min_size=2, max_size=12))
def test_the_exact_test_is_scipys_permutation_of_signs(net: list[int]) -> None:
    from scipy.stats import permutation_test

    found = permutation_test(
        (np.array(net, dtype=float),), lambda x, axis: np.abs(x.mean(axis=axis)), vectorized=True,
        permutation_type="samples", alternative="greater", n_resamples=2**12,
    )  # fmt: skip
    assert mcnemar_exact(np.array(net, dtype=np.int64)) == pytest.approx(found.pvalue, abs=1e-12)


def test_with_many_conversations_it_is_still_exact_and_never_impossible() -> None:
    net = np.random.default_rng(15).choice([-3, -2, -1, 1, 2, 3], 400, p=[0.05, 0.1, 0.3, 0.4, 0.1, 0.05])
    # As the sum over assignments by whole numbers, which no rounding touches.
    ways = {0: 1}
    for step in np.abs(net).tolist():
        ways = {total: ways.get(total - step, 0) + ways.get(total + step, 0) for total in
                {found + sign * step for found in ways for sign in (-1, 1)}}  # fmt: skip
    expected = sum(count for total, count in ways.items() if abs(total) >= abs(net.sum())) / 2 ** len(net)
    assert mcnemar_exact(net) == pytest.approx(expected, rel=1e-10)
    assert 0.0 < mcnemar_exact(np.ones(2000, dtype=np.int64)) < 1e-300


@given(turns)
def test_counts_means_errors_and_tests_are_those_of_the_common_turns(rows: list[tuple[float, float, int]]) -> None:
    found = compared(rows)
    common = [(a, b, c) for a, b, c in rows if not (math.isnan(a) or math.isnan(b))]
    sums = [sum(b - a for a, b, c in common if c == cluster) for cluster in {c for *_, c in common}]
    if found.p_value is None:
        assert found.p_exact is None
    else:
        assert found.p_exact == pytest.approx(mcnemar_exact(np.array(sums, dtype=np.int64)), abs=1e-12)
    assert (found.n, found.clusters) == (len(common), len({c for *_, c in common}))
    assert found.broken == sum(a > b for a, b, _ in common)
    assert found.fixed == sum(a < b for a, b, _ in common)
    if common:
        assert found.difference == pytest.approx((found.fixed - found.broken) / found.n)
        assert found.second == pytest.approx((found.first or 0) + (found.difference or 0))
    else:
        assert found.reason == "no common turns"
    mean = estimate_mean([b - a for a, b, _ in rows], np.array([c for *_, c in rows], dtype=np.int64))
    assert found.se == (None if mean.se is None else pytest.approx(mean.se, abs=1e-12))
    if found.method == "t_clustered":
        assert found.changed >= FEW_CHANGED
        low, high = found.interval()
        assert low == pytest.approx(max(-1.0, mean.low or 0.0))
        assert high == pytest.approx(min(1.0, mean.high or 0.0))
    elif found.method == "mcnemar_exact":
        assert found.changed < FEW_CHANGED or found.se == 0.0
    swapped = compared([(b, a, c) for a, b, c in rows])
    assert (found.broken, found.fixed, found.p_value) == (swapped.fixed, swapped.broken, swapped.p_value)
    assert found.correlation == swapped.correlation
    if found.difference is not None and swapped.difference is not None:
        assert found.difference == -swapped.difference
    low, high = found.interval()
    other_low, other_high = swapped.interval()
    if low is not None and high is not None:
        assert (other_low, other_high) == (pytest.approx(-high), pytest.approx(-low))


@pytest.mark.parametrize(("broken", "fixed"), [(0, 3), (4, 9), (12, 13), (30, 5), (400, 380)])
def test_single_turns_give_the_binomial_test_of_scipy(broken: int, fixed: int) -> None:
    from scipy.stats import binomtest

    net = np.array([-1] * broken + [1] * fixed + [0] * 50)
    assert mcnemar_exact(net) == pytest.approx(binomtest(fixed, broken + fixed).pvalue, rel=1e-9)


@example([(0.0, 0.0, 0), *[(0.0, 1.0, 0)] * 3, *[(0.0, 1.0, one) for one in (1, 2, 3, 4)]], 0.05)
@given(turns, st.sampled_from([0.05, 0.01, 0.001]))
def test_the_interval_of_a_test_by_t_holds_0_where_p_is_above_its_level(
    rows: list[tuple[float, float, int]], alpha: float
) -> None:
    found = compared(rows)
    low, high = found.interval(alpha)
    if found.p_value is None or low is None or high is None:
        assert found.method == "none"
        return
    assert 0.0 < found.p_value <= 1.0
    assert -1.0 <= low <= high <= 1.0
    if found.method == "t_clustered" and abs(found.p_value - alpha) > 1e-9:
        assert (low <= 0.0 <= high) == (found.p_value > alpha)
    if found.changed < 6 and found.method == "mcnemar_exact" and found.se:
        assert low <= 0.0 <= high, "what the exact test can never show the interval does not claim"


def test_correlation_is_numpys() -> None:
    rng = np.random.default_rng(2)
    a = (rng.random(300) < 0.7).astype(float)
    b = np.where(rng.random(300) < 0.8, a, 1 - a)
    assert paired_difference(a, b, np.arange(300) // 3).correlation == pytest.approx(np.corrcoef(a, b)[0, 1])


@given(st.lists(st.one_of(st.none(), st.floats(1e-12, 1.0)), max_size=12))
def test_a_corrected_p_below_5_percent_is_a_p_below_its_level(p_values: list[float | None]) -> None:
    for p, found in zip(p_values, holm(p_values), strict=True):
        assert (p is None) == (found is None)
        if p is not None and found is not None:
            assert found.p_value >= p
            if abs(found.p_value - 0.05) > 1e-9:
                assert (found.p_value < 0.05) == (p < found.alpha)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12))
def test_who_is_off_the_front_is_beaten_by_one_on_it(points: list[tuple[int, int]]) -> None:
    front = pareto_front([cost for cost, _ in points], [accuracy for _, accuracy in points]).tolist()
    best = [point for point, on in zip(points, front, strict=True) if on]
    for (cost, accuracy), on in zip(points, front, strict=True):
        beaten = any(c <= cost and a >= accuracy and (c, a) != (cost, accuracy) for c, a in best)
        assert on is not beaten


def test_means_are_tested_as_by_scipy_by_all_flips_and_by_conversation() -> None:
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
    differences = np.array([0.5, 0.25, -0.1, 0.4, 0.3, 0.2, 0.0, 0.35])
    clusters = np.array([0, 0, 1, 2, 3, 4, 5, 6])
    sums = np.bincount(clusters, weights=differences)
    all_flips = [abs(np.dot(signs, sums)) >= abs(sums.sum()) - 1e-9 for signs in product((-1, 1), repeat=sums.size)]
    found = paired_means(np.zeros(8), differences, clusters)
    assert found.p_flips == pytest.approx(np.mean(all_flips), abs=0.01)
    assert found.p_decisive == max(found.p_value or 0, found.p_flips or 0)
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
