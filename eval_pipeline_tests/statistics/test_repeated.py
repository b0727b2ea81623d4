"""pass@k and pass^k against enumeration of every draw, and against the code of the paper."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.statistics import latency_quantiles, pass_at_k, pass_hat_k


@pytest.mark.parametrize("n", range(1, 8))
def test_every_draw_of_k_samples(n: int) -> None:
    for c in range(n + 1):
        for k in range(1, n + 1):
            draws = [sum(draw) for draw in combinations([1] * c + [0] * (n - c), k)]
            assert pass_at_k(n, c, k) == pytest.approx(np.mean([d > 0 for d in draws]), abs=1e-12)
            assert pass_hat_k(n, c, k) == pytest.approx(np.mean([d == k for d in draws]), abs=1e-12)


@settings(deadline=None)
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


def test_impossible_counts_are_refused() -> None:
    for function in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match="k must be"):
            function([3], [1], 0)
        for c in (4, -1):
            with pytest.raises(ValueError, match=r"0\.\.n"):
                function([3], [c], 1)
        with pytest.raises(ValueError, match="whole numbers"):
            function([3.5], [1], 1)


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_quantiles_lie_among_the_values(values: list[float]) -> None:
    p50, p95 = latency_quantiles(values)
    assert p50 is not None
    assert p95 is not None
    assert min(values) <= p50 <= p95 * (1 + 1e-12) <= max(values) * (1 + 1e-9)
    assert sum(v <= p95 * (1 + 1e-9) for v in values) >= 0.95 * (len(values) - 1)
