"""Cost of a success: what must hold for any costs, and the linearised error against its own definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.statistics import cost_per_success
from eval_pipeline.statistics._special import t_critical

clusters = st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 5)), max_size=40)


@settings(deadline=None)
@given(clusters)
def test_null_means_a_reason_and_the_rest_is_finite(pairs: list[tuple[float, int]]) -> None:
    found = cost_per_success([c for c, _ in pairs], [s for _, s in pairs])
    numbers = (found.total, found.ratio, found.low, found.high)
    assert (found.reason is None) == all(v is not None for v in numbers)
    assert all(v is None or math.isfinite(v) for v in numbers)
    if found.ratio is not None and found.low is not None and found.high is not None:
        assert found.low <= found.ratio <= found.high
        assert found.low * found.high == pytest.approx(found.ratio**2, rel=1e-9, abs=1e-300)


@settings(deadline=None)
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
    assert found.ratio is not None
    assert found.low is not None
    assert found.high is not None
    assert (in_other_unit.ratio, in_other_unit.low, in_other_unit.high) == pytest.approx(
        (found.ratio * unit, found.low * unit, found.high * unit), rel=1e-6
    )


def test_failed_conversations_are_paid_for() -> None:
    with_failure = cost_per_success([100, 100, 700], [True, True, False])
    assert with_failure.total == 900.0
    assert with_failure.ratio == 450.0


def test_what_is_no_cost_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        cost_per_success([1, -1], [1, 1])
    with pytest.raises(ValueError, match="infinity"):
        cost_per_success([1, math.inf], [1, 1])
    with pytest.raises(ValueError, match="one shape"):
        cost_per_success([1, 2, 3], [1, 1])
    for wrong in ([0.5, 1], [-1, 1], [math.nan, 1]):
        with pytest.raises(ValueError, match="whole numbers"):
            cost_per_success([1, 2], wrong)
