"""The paired difference: against references, and what must hold for any data."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.statistics import (
    PairedDifference,
    estimate_mean,
    holm,
    mcnemar_exact,
    paired_difference,
    pareto_front,
)
from eval_pipeline.statistics.paired import FEW_CHANGED

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


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-5, 5), min_size=2, max_size=12))
def test_the_exact_test_is_scipys_permutation_of_signs(net: list[int]) -> None:
    from scipy.stats import permutation_test

    found = permutation_test(
        (np.array(net, dtype=float),), lambda x, axis: np.abs(x.mean(axis=axis)), vectorized=True,
        permutation_type="samples", alternative="greater", n_resamples=2**12,
    )  # fmt: skip
    assert mcnemar_exact(np.array(net, dtype=np.int64)) == pytest.approx(found.pvalue, abs=1e-12)


def test_with_many_conversations_it_is_still_exact_where_signs_drawn_at_random_only_come_near() -> None:
    rng = np.random.default_rng(15)
    net = rng.choice([-3, -2, -1, 1, 2, 3], 400, p=[0.05, 0.1, 0.3, 0.4, 0.1, 0.05])
    drawn = np.abs((rng.choice([-1, 1], (40_000, net.size)) * net).sum(axis=1)) >= abs(net.sum())
    error = math.sqrt(drawn.mean() * (1 - drawn.mean()) / drawn.size)
    assert mcnemar_exact(net) == pytest.approx(drawn.mean(), abs=4 * error)
    # As the sum over assignments by whole numbers, which no rounding touches.
    ways = {0: 1}
    for step in np.abs(net).tolist():
        ways = {total: ways.get(total - step, 0) + ways.get(total + step, 0) for total in
                {found + sign * step for found in ways for sign in (-1, 1)}}  # fmt: skip
    expected = sum(count for total, count in ways.items() if abs(total) >= abs(net.sum())) / 2 ** len(net)
    assert mcnemar_exact(net) == pytest.approx(expected, rel=1e-10)


@settings(deadline=None)
@given(turns)
def test_the_exact_p_stands_beside_that_of_t(rows: list[tuple[float, float, int]]) -> None:
    found = compared(rows)
    common = [(b - a, c) for a, b, c in rows if not (math.isnan(a) or math.isnan(b))]
    sums = [sum(d for d, c in common if c == cluster) for cluster in {c for _, c in common}]
    if found.p_value is None:
        assert found.p_exact is None
    else:
        assert found.p_exact == pytest.approx(mcnemar_exact(np.array(sums, dtype=np.int64)), abs=1e-12)


@pytest.mark.parametrize(("broken", "fixed"), [(0, 3), (4, 9), (12, 13), (30, 5), (400, 380)])
def test_single_turns_give_the_binomial_test_of_scipy(broken: int, fixed: int) -> None:
    from scipy.stats import binomtest

    net = np.array([-1] * broken + [1] * fixed + [0] * 50)
    assert mcnemar_exact(net) == pytest.approx(binomtest(fixed, broken + fixed).pvalue, rel=1e-9)


def test_a_thousand_changes_one_way_are_not_impossible() -> None:
    assert 0.0 < mcnemar_exact(np.ones(2000, dtype=np.int64)) < 1e-300


@settings(deadline=None)
@given(turns)
def test_counts_and_means_are_those_of_the_common_turns(rows: list[tuple[float, float, int]]) -> None:
    found = compared(rows)
    common = [(a, b, c) for a, b, c in rows if not (math.isnan(a) or math.isnan(b))]
    assert (found.n, found.clusters) == (len(common), len({c for *_, c in common}))
    assert found.broken == sum(a > b for a, b, _ in common)
    assert found.fixed == sum(a < b for a, b, _ in common)
    if common:
        assert found.difference == pytest.approx((found.fixed - found.broken) / found.n)
        assert found.second == pytest.approx((found.first or 0) + (found.difference or 0))
    else:
        assert found.reason == "no common turns"


@settings(deadline=None)
@given(turns)
def test_error_and_test_agree_with_the_clustered_mean_of_the_differences(rows: list[tuple[float, float, int]]) -> None:
    found = compared(rows)
    mean = estimate_mean([b - a for a, b, _ in rows], np.array([c for *_, c in rows], dtype=np.int64))
    assert found.se == (None if mean.se is None else pytest.approx(mean.se, abs=1e-12))
    if found.method == "t_clustered":
        assert found.changed >= FEW_CHANGED
        low, high = found.interval()
        assert low == pytest.approx(max(-1.0, mean.low or 0.0))
        assert high == pytest.approx(min(1.0, mean.high or 0.0))
    elif found.method == "mcnemar_exact":
        assert found.changed < FEW_CHANGED or found.se == 0.0


@settings(deadline=None)
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


@settings(deadline=None)
@given(turns)
def test_the_two_models_may_change_places(rows: list[tuple[float, float, int]]) -> None:
    found, swapped = compared(rows), compared([(b, a, c) for a, b, c in rows])
    assert (found.broken, found.fixed, found.p_value) == (swapped.fixed, swapped.broken, swapped.p_value)
    assert found.correlation == swapped.correlation
    if found.difference is not None and swapped.difference is not None:
        assert found.difference == -swapped.difference
    low, high = found.interval()
    other_low, other_high = swapped.interval()
    if low is not None and high is not None:
        assert (other_low, other_high) == (pytest.approx(-high), pytest.approx(-low))


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


def test_what_is_no_pair_is_refused() -> None:
    with pytest.raises(ValueError, match="one shape"):
        paired_difference([1, 0], [1], [0, 0])
    with pytest.raises(ValueError, match="0, 1 or NaN"):
        paired_difference([0.5], [1], [0])
    with pytest.raises(ValueError, match="one shape"):
        pareto_front([1, 2], [1])
