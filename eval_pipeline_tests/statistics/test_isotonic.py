"""The monotone fit, against scipy and against what defines it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from eval_pipeline.statistics import antitonic

rows = st.lists(st.tuples(st.floats(-100, 100), st.integers(1, 50)), min_size=1, max_size=20)
rows_with_gaps = st.lists(st.tuples(st.floats(-1, 1), st.integers(0, 3)), min_size=1, max_size=20)


@settings(deadline=None)
@given(rows)
def test_is_the_fit_of_scipy(pairs: list[tuple[float, int]]) -> None:
    means, weights = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    expected = isotonic_regression(means, weights=weights, increasing=False).x
    np.testing.assert_allclose(antitonic(means, weights), expected, rtol=1e-9, atol=1e-9)


@settings(deadline=None)
@given(rows_with_gaps)
def test_never_rises_and_levels_without_weight_do_not_matter(pairs: list[tuple[float, int]]) -> None:
    means, weights = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    fit, seen = antitonic(means, weights), weights > 0
    if not seen.any():
        assert np.isnan(fit).all()
        return
    assert (np.diff(fit) <= 0).all()
    np.testing.assert_allclose(fit[seen], antitonic(means[seen], weights[seen]), rtol=1e-12, atol=1e-12)
    assert np.array_equal(antitonic(np.where(seen, means, np.nan), weights), fit)


@settings(deadline=None)
@given(rows)
def test_fitting_a_fit_changes_nothing(pairs: list[tuple[float, int]]) -> None:
    means, weights = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    fit = antitonic(means, weights)
    np.testing.assert_allclose(antitonic(fit, weights), fit, rtol=1e-12, atol=1e-10)
    assert np.average(fit, weights=weights) == pytest.approx(np.average(means, weights=weights), abs=1e-9)


def test_leading_axes_are_rows() -> None:
    rng = np.random.default_rng(3)
    means, weights = rng.random((4, 5, 7)), rng.integers(0, 4, (4, 5, 7))
    fit = antitonic(means, weights)
    for index in np.ndindex(4, 5):
        np.testing.assert_array_equal(fit[index], antitonic(means[index], weights[index]))
    assert antitonic(means, 1.0).shape == (4, 5, 7)


def test_what_is_no_weight_or_mean_is_refused() -> None:
    for weights in ([-1, 1], [np.nan, 1], [np.inf, 1]):
        with pytest.raises(ValueError, match="weights"):
            antitonic([1, 2], weights)
    with pytest.raises(ValueError, match="means with weight"):
        antitonic([np.nan, 2], [1, 1])
    with pytest.raises(ValueError, match="axis"):
        antitonic(1.0, 1.0)
