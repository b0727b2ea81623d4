"""Student's t and the logistic function against scipy, and against tables where scipy rounds."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.special import expit, stdtr, stdtrit

from eval_pipeline.statistics._special import logistic, t_critical, t_p_value

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
