"""The logistic fit, against an independent maximisation and an independent sandwich."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import t as student

from eval_pipeline.statistics.curves import logistic
from eval_pipeline.statistics.curves.logistic import LogisticFit, clustered_logistic

data = st.lists(st.tuples(st.integers(0, 6), st.booleans(), st.integers(0, 9)), min_size=1, max_size=80)


def maximised(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Intercept and slope by a general optimiser that knows nothing of logistic regression."""

    def loss(beta: NDArray[np.float64]) -> float:
        eta = beta[0] + beta[1] * x
        return float(np.logaddexp(0, eta).sum() - y @ eta)

    start = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 5000})
    return np.asarray(minimize(loss, start.x, method="BFGS", options={"gtol": 1e-9}).x)


def sandwich(x: NDArray[np.float64], y: NDArray[np.float64], c: NDArray[np.int64], beta: NDArray[np.float64]) -> float:
    """Error of the slope, turn by turn and cluster by cluster."""
    information, meat = np.zeros((2, 2)), np.zeros((2, 2))
    scores = {label: np.zeros(2) for label in c.tolist()}
    for xi, yi, label in zip(x, y, c.tolist(), strict=True):
        p, row = 1 / (1 + math.exp(-(beta[0] + beta[1] * xi))), np.array([1.0, xi])
        information += p * (1 - p) * np.outer(row, row)
        scores[label] += (yi - p) * row
    for score in scores.values():
        meat += np.outer(score, score)
    inverse = np.linalg.inv(information)
    return math.sqrt(len(scores) / (len(scores) - 1) * (inverse @ meat @ inverse)[1, 1])


@pytest.mark.parametrize("seed", range(8))
def test_is_the_maximum_with_the_sandwich_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    c = rng.integers(0, 25, 200)
    x = rng.integers(1, 9, 200).astype(float)
    chance = 1 / (1 + np.exp(-(2 - 0.4 * x + rng.normal(0, 0.7, 25)[c])))
    y = (rng.random(200) < chance).astype(float)
    found, beta = clustered_logistic(x, y, c), maximised(x, y)
    assert (found.intercept, found.slope) == pytest.approx(tuple(beta), rel=1e-5)
    assert found.odds_ratio == pytest.approx(math.exp(found.slope))
    clusters = len(np.unique(c))
    assert found.se == pytest.approx(sandwich(x, y, c, np.array([found.intercept, found.slope])), rel=1e-9)
    assert found.p_value == pytest.approx(2 * student.sf(abs(found.slope / found.se), clusters - 1), rel=1e-9)


@given(data)
def test_the_score_is_zero_or_there_is_a_reason(rows: list[tuple[int, bool, int]]) -> None:
    x, y, c = (np.array(column) for column in zip(*rows, strict=True))
    found = clustered_logistic(x, y, c)
    right, wrong = x[y], x[~y]
    overlap = len(right) > 0 and len(wrong) > 0 and right.max() > wrong.min() and wrong.max() > right.min()
    assert (found.slope is not None) == overlap
    if found.slope is None or found.intercept is None:
        assert found.reason in {"no variation in complexity", "all answers alike", "separated"}
        assert found.se is found.odds_ratio is found.p_value is found.intercept is None
        return
    residual = y - 1 / (1 + np.exp(-(found.intercept + found.slope * x)))
    assert residual.sum() == pytest.approx(0, abs=1e-8)
    assert residual @ x == pytest.approx(0, abs=1e-7)
    assert (found.reason is None) == (found.p_value is not None)


@given(data, st.integers(2, 3), st.integers(-1000, 1000))
def test_copies_of_turns_and_names_of_clusters_change_nothing(
    rows: list[tuple[int, bool, int]], times: int, shift: int
) -> None:
    x, y, c = (np.array(column) for column in zip(*rows, strict=True))
    once = clustered_logistic(x, y, c)
    again = clustered_logistic(np.tile(x, times)[::-1], np.tile(y, times)[::-1], shift - np.tile(c, times)[::-1])
    assert again.reason == once.reason
    if once.slope is None:
        return
    for name in ("slope", "se", "p_value", "intercept"):
        expected = getattr(once, name)
        assert getattr(again, name) == (None if expected is None else pytest.approx(expected, rel=1e-6, abs=1e-8))


@pytest.mark.parametrize("many", [100, 10_000, 1_000_000])
def test_one_turn_short_of_separation_still_converges(many: int) -> None:
    x = np.concatenate([np.full(many, 1.0), np.full(many, 2.0), [3.0, 0.0]])
    y = np.concatenate([np.ones(many), np.zeros(many), [1.0, 0.0]])
    found = clustered_logistic(x, y, np.arange(x.size))
    # By symmetry about 1.5, where the odds are even.
    assert found.intercept == pytest.approx(-1.5 * found.slope, rel=1e-6)


@pytest.mark.parametrize(("scale", "offset"), [(1e-3, 0.0), (1e9, 0.0), (1.0, 1e4)])
def test_the_unit_of_complexity_does_not_matter(scale: float, offset: float) -> None:
    rng = np.random.default_rng(11)
    x, c = rng.integers(0, 6, 150), rng.integers(0, 30, 150)
    y = rng.random(150) < 1 / (1 + np.exp(-1 + 0.5 * x))
    plain, scaled = clustered_logistic(x, y, c), clustered_logistic(x * scale + offset, y, c)
    assert scaled.slope * scale == pytest.approx(plain.slope, rel=1e-6)
    assert scaled.p_value == pytest.approx(plain.p_value, rel=1e-6)


@pytest.mark.parametrize(
    ("x", "right"),
    [
        # Newton's own steps overshoot here, until the information is singular.
        ([6.59, 1.08, 0.18, 2.08, 2.43, 0.11, 0.01, 9.07, 0.01, 136.62, 0.06, 1.02, 114.46], [12]),
        # The likelihood falls by rounding at the maximum.
        ([0.68, 2.18, 0.71, 0.01, 151.29, 5.27, 2.25, 0.04, 1.61, 0.12, 100.86], [1, 2, 4, 5, 6, 8, 9, 10]),
        # One level a million times as far as the others, and right answers among the low ones.
        ([661934.0, *range(1, 38)], [1, 2, 5, 6, 20]),
        ([1e9, 0.5, 1, 2, 3, 4, 5, 6, 7], [1, 3, 8]),
    ],
)
def test_far_levels_do_not_throw_the_fit(x: list[float], right: list[int]) -> None:
    y = np.isin(np.arange(len(x)), right).astype(float)
    found = clustered_logistic(x, y, np.arange(len(x)))
    residual = y - expit(found.intercept + found.slope * np.array(x))
    assert residual.sum() == pytest.approx(0, abs=1e-8)
    assert residual @ np.minimum(x, 1e3) == pytest.approx(0, abs=1e-5)


def test_what_is_missing_is_left_out_and_what_a_float_cannot_hold_is_null(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, c = [0, 0, 0, 1, 1, 1.0], [1, 1, 0, 1, 0, 0.0], [0, 1, 2, 3, 4, 5]
    assert clustered_logistic([*x, math.nan, 2.0], [*y, 1.0, math.nan], [*c, 6, 7]) == clustered_logistic(x, y, c)
    x = np.array([0, 0, 0, 1, 1, 1]) * 1e-6 + 1.0
    found = clustered_logistic(x, np.array([0, 0, 1, 1, 1, 0]), np.arange(6))
    assert found.slope == pytest.approx(math.log(4) * 1e6, rel=1e-6)
    assert found.odds_ratio is None
    assert found.reason == "slope too steep for an odds ratio"
    monkeypatch.setattr(logistic, "_MAX_STEPS", 1)
    found = clustered_logistic([0, 0, 0, 1, 1, 1], [1, 1, 0, 1, 0, 0], np.arange(6))
    assert found == LogisticFit(None, None, None, None, None, "fit did not converge")
