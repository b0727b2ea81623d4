"""Means and rates, and the functions they need: against formulas, against scipy, and what must hold for any data."""

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit, stdtr, stdtrit

from eval_pipeline.statistics._clusters import as_codes
from eval_pipeline.statistics._special import logistic, t_critical, t_p_value
from eval_pipeline.statistics.cost import cost_per_success, latency_quantiles
from eval_pipeline.statistics.intervals import Estimate, estimate_mean, estimate_rate
from eval_pipeline.statistics.samples.repeated import pass_at_k, pass_hat_k

verdicts = st.lists(st.tuples(st.sampled_from([0.0, 1.0, math.nan]), st.integers(-5, 5)), max_size=60)
measures = st.lists(
    st.tuples(st.one_of(st.floats(-1e6, 1e6), st.just(math.nan)), st.integers(-5, 5)), min_size=1, max_size=60
)


def columns(pairs: list[tuple[float, int]]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    return np.array([p[0] for p in pairs], dtype=np.float64), np.array([p[1] for p in pairs], dtype=np.int64)


def spelt_out_variance(pairs: list[tuple[float, int]]) -> Fraction | None:
    """SE^2 of statistics.md in exact arithmetic, or None with fewer than two clusters."""
    present = [(Fraction(v), c) for v, c in pairs if not math.isnan(v)]
    labels = {c for _, c in present}
    if len(labels) < 2:
        return None
    mean = sum(v for v, _ in present) / Fraction(len(present))
    squares = sum(sum(v - mean for v, c in present if c == label) ** 2 for label in labels)
    return Fraction(len(labels), len(labels) - 1) * squares / len(present) ** 2


@given(verdicts)
def test_a_rate_has_the_error_of_the_formula_and_its_interval_in_bounds(pairs: list[tuple[float, int]]) -> None:
    expected, found = spelt_out_variance(pairs), estimate_rate(*columns(pairs))
    assert (found.se is None) == (expected is None)
    if expected is not None:
        assert (found.se == 0.0) == (expected == 0)
        assert found.se == pytest.approx(math.sqrt(expected), rel=1e-12)
    mirror = estimate_rate(*columns([(1 - v, c) for v, c in pairs]))
    if found.low is not None:
        assert mirror.high == pytest.approx(1 - found.low, abs=1e-12)
        assert mirror.se == found.se
    assert found.n == sum(not math.isnan(v) for v, _ in pairs)
    if found.low is None or found.high is None:
        assert found.clusters < 2
        assert found.method == "none"
        assert found.reason == ("no turn has a value" if found.n == 0 else "one conversation only")
        assert found.se is found.low is found.high is None
    else:
        assert 0.0 <= found.low <= found.mean <= found.high <= 1.0
        assert found.low < found.high
        assert (found.method, found.reason) == ("wilson_clustered", None)


@given(measures)
def test_a_mean_has_the_error_of_the_formula_and_a_symmetric_interval(pairs: list[tuple[float, int]]) -> None:
    expected, found = spelt_out_variance(pairs), estimate_mean(*columns(pairs)).se
    assert (found is None) == (expected is None)
    if expected is not None and found is not None:
        scale = max(abs(v) for v, _ in pairs if not math.isnan(v))
        assert found == pytest.approx(math.sqrt(expected), rel=1e-9, abs=1e-12 * scale)
    found = estimate_mean(*columns(pairs))
    if found.mean is not None and found.low is not None and found.high is not None:
        assert found.low <= found.mean <= found.high
        assert found.high - found.mean == pytest.approx(found.mean - found.low, rel=1e-6, abs=1e-6)


@given(verdicts, st.randoms(use_true_random=False), st.integers(-(2**62), 2**62))
def test_rate_does_not_depend_on_order_or_labels(pairs: list[tuple[float, int]], random: object, shift: int) -> None:
    before = estimate_rate(*columns(pairs))
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    # An odd factor permutes 64-bit integers: labels far apart, of both signs, still distinct.
    relabelled = [(v, (c * 6_364_136_223_846_793_005 + shift) % 2**64 - 2**63) for v, c in shuffled]
    assert estimate_rate(*columns(relabelled)) == before


@given(measures, st.integers(2, 4))
def test_asking_every_turn_again_teaches_nothing(pairs: list[tuple[float, int]], times: int) -> None:
    once, often = estimate_mean(*columns(pairs)), estimate_mean(*columns(pairs * times))
    assert often.clusters == once.clusters
    if once.mean is not None and once.se is not None:
        scale = max(abs(v) for v, _ in pairs if not math.isnan(v))
        assert often.mean == pytest.approx(once.mean, rel=1e-9, abs=1e-9 * scale)
        assert often.se == pytest.approx(once.se, rel=1e-6, abs=1e-9 * scale)


def test_means_and_rates_of_scores_large_values_and_single_turns() -> None:
    values, clusters = np.array([1.0, 0.9, 1.0, 0.2, 0.0]), np.arange(5)
    free, cut = estimate_mean(values, clusters), estimate_mean(values, clusters, (0.0, 1.0))
    assert free.high > 1.0
    assert (cut.mean, cut.se, cut.low, cut.high) == (free.mean, free.se, free.low, 1.0)
    from scipy.stats import t, ttest_1samp

    values = np.random.default_rng(5).normal(3, 2, 37)
    found, expected = estimate_mean(values, np.arange(37)), ttest_1samp(values, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-12)
    assert found.se == pytest.approx(np.std(values, ddof=1) / math.sqrt(37))
    assert t.ppf(0.975, 36) * (found.se or 0) == pytest.approx((found.high or 0) - (found.mean or 0))
    from scipy.stats import binomtest

    n, right = 200_000, 23_456
    found = estimate_rate(np.arange(n) < right, np.arange(n))
    expected = binomtest(right, n).proportion_ci(0.95, method="wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-5)
    # Quarters are exact beside 2^40, so that only the summing could lose them.
    values, clusters = np.arange(3000) % 7 / 4, np.arange(3000) // 3
    assert estimate_mean(values + 2.0**40, clusters).se == pytest.approx(estimate_mean(values, clusters).se, rel=1e-9)
    found = estimate_mean(np.array([1e200, -1e200, 0.0]), np.array([0, 1, 2]))
    assert found == Estimate(3, 3, 0.0, None, None, None, "none", "values too large to average")
    found = estimate_rate(np.array([1.0, 0.0, 1.0]), np.array([0, 1, 2]))
    assert [type(v) for v in (found.n, found.clusters, found.mean, found.se, found.low, found.high)] == [
        int, int, float, float, float, float,
    ]  # fmt: skip


@given(st.floats(-1e9, 1e9), st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_equal_values_have_that_mean_and_no_error(value: float, labels: list[int]) -> None:
    found = estimate_mean(np.full(len(labels), value), np.array(labels))
    assert found.mean == value
    assert found.se == (0.0 if len(set(labels)) > 1 else None)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint64"])
def test_labels_of_every_integer_type(dtype: str) -> None:
    info = np.iinfo(dtype)
    labels = np.array([info.min, info.max, info.max - 1, info.min, info.max], dtype=dtype)
    codes = as_codes(labels, 5)
    assert codes.min() >= 0
    assert np.array_equal(codes[:, None] == codes[None, :], labels[:, None] == labels[None, :])


clusters = st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 5)), max_size=40)


@given(clusters)
def test_null_means_a_reason_and_the_rest_is_finite(pairs: list[tuple[float, int]]) -> None:
    found = cost_per_success([c for c, _ in pairs], [s for _, s in pairs])
    numbers = (found.total, found.ratio, found.low, found.high)
    assert (found.reason is None) == all(v is not None for v in numbers)
    assert all(v is None or math.isfinite(v) for v in numbers)
    if found.ratio is not None and found.low is not None and found.high is not None:
        assert found.low <= found.ratio <= found.high
        assert found.low * found.high == pytest.approx(found.ratio**2, rel=1e-9, abs=1e-300)


@given(st.lists(st.tuples(st.floats(0.01, 1e4), st.integers(0, 5)), min_size=2, max_size=30), st.floats(1e-3, 1e3))
def test_formula_as_the_specification_has_it(pairs: list[tuple[float, int]], unit: float) -> None:
    t, y = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
    if y.sum() == 0:
        return
    found, in_other_unit = cost_per_success(t, y), cost_per_success(t * unit, y)
    ratio, count = t.sum() / y.sum(), len(pairs)
    se = math.sqrt(count / (count - 1) * ((t - ratio * y) ** 2).sum() / y.sum() ** 2)
    factor = math.exp(t_critical(count - 1) * se / ratio)
    assert found.ratio == pytest.approx(ratio)
    assert found.low == pytest.approx(ratio / factor, rel=1e-6)
    assert found.high == pytest.approx(ratio * factor, rel=1e-6)
    assert (in_other_unit.ratio, in_other_unit.low, in_other_unit.high) == pytest.approx(
        (found.ratio * unit, found.low * unit, found.high * unit), rel=1e-6
    )


def test_failed_conversations_are_paid_for() -> None:
    with_failure = cost_per_success([100, 100, 700], [True, True, False])
    assert with_failure.total == 900.0
    assert with_failure.ratio == 450.0


@pytest.mark.parametrize("n", range(1, 8))
def test_every_draw_of_k_samples(n: int) -> None:
    for c in range(n + 1):
        for k in range(1, n + 1):
            draws = [sum(draw) for draw in combinations([1] * c + [0] * (n - c), k)]
            assert pass_at_k(n, c, k) == pytest.approx(np.mean([d > 0 for d in draws]), abs=1e-12)
            assert pass_hat_k(n, c, k) == pytest.approx(np.mean([d == k for d in draws]), abs=1e-12)


@given(st.integers(1, 2000), st.data())
def test_code_of_the_paper(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, min(n, 200)))
    # Chen et al. 2021, figure 3.
    expected = 1.0 if n - c < k else 1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1))
    assert pass_at_k(n, c, k) == pytest.approx(expected, abs=1e-9)
    assert 0.0 <= pass_hat_k(n, c, k) <= c / n + 1e-12
    assert c / n - 1e-12 <= pass_at_k(n, c, k) <= 1.0


def test_turns_at_once_keep_their_shape() -> None:
    n, c = np.array([[4, 4], [2, 0]]), np.array([[1, 3], [2, 0]])
    np.testing.assert_allclose(pass_at_k(n, c, 3), [[0.75, 1.0], [np.nan, np.nan]])
    np.testing.assert_allclose(pass_hat_k(n, c, 3), [[0.0, 0.25], [np.nan, np.nan]])
    assert pass_at_k([], [], 1).shape == (0,)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_quantiles_lie_among_the_values(values: list[float]) -> None:
    p50, p95 = latency_quantiles(values)
    assert min(values) <= p50 <= p95 * (1 + 1e-12) <= max(values) * (1 + 1e-9)
    assert sum(v <= p95 * (1 + 1e-9) for v in values) >= 0.95 * (len(values) - 1)


DEGREES = (*range(1, 61), 99, 118, 500, 2_999, 9_999, 100_000)


def test_critical_values_are_scipys() -> None:
    for df in DEGREES:
        assert t_critical(df) == pytest.approx(float(stdtrit(df, 0.975)), rel=2e-11), df
        for alpha in (1e-6, 0.001, 0.0125, 0.2, 0.4, 0.9):
            assert t_critical(df, alpha) == pytest.approx(float(stdtrit(df, 1 - alpha / 2)), rel=1e-9), (df, alpha)


def test_p_values_are_scipys_from_the_middle_far_into_the_tails() -> None:
    statistics = (0.001, 0.01, 0.3, 0.9, 1.0, 1.5, 1.7, 1.8, 2.0, 2.5, 4.0, 10.0, 40.0, 1e3, 1e6)
    for statistic, df in product(statistics, DEGREES):
        expected = 2.0 * float(stdtr(df, -statistic))
        assert t_p_value(statistic, df) == pytest.approx(expected, rel=1e-9, abs=1e-300), (statistic, df)
        assert t_p_value(-statistic, df) == t_p_value(statistic, df)


def test_p_values_are_those_of_cauchy_and_of_the_ends_and_logits_keep_their_digits() -> None:
    for statistic in (1e-9, 1e-3, 0.5, 1.0, 3.0, 1e5, 1e12):
        assert t_p_value(statistic, 1) == pytest.approx(2.0 / math.pi * math.atan2(1.0, statistic), rel=1e-13)
    assert t_p_value(0.0, 3) == 1.0
    assert t_p_value(1e-200, 3) == 1.0
    assert t_p_value(1e200, 3) == 0.0
    assert t_p_value(math.inf, 3) == 0.0
    x = np.array([-800.0, -740.0, -50.0, -1.0, 0.0, 1e-9, 1.0, 36.0, 50.0, 800.0])
    np.testing.assert_allclose(logistic(x), expit(x), rtol=2e-13, atol=1e-320)
