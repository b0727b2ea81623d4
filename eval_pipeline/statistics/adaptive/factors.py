"""A logistic factor model of earlier evaluations, and what it predicts for a new model.

log odds of turn j by evaluation m = a_m + d_j + u_m · v_j: ability, easiness, and k factors of how models differ beyond
that (Wu, Nair and Candès 2601.20251, 3; without factors it is Rasch's model). It is fitted by its posterior mode, in
turns over evaluations and turns. For a new model, coefficients of (1, d_j, v_j) are drawn from a normal distribution
around those of the earlier ones; the coefficient of d_j, 1 for all earlier ones, is left free, so that a model for
which other turns are hard than for earlier models is recognised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from eval_pipeline.statistics.adaptive.units import DrawSettings, Floats, History

_ROUNDS: Final = 20
_ENOUGH_FOR_FACTORS: Final = 8
"""Evaluations from which on one factor beyond easiness is fitted."""
_WIDE: Final = 1.5
"""Prior standard deviation of abilities and easiness, in log odds."""
_ALIKE: Final = 5
"""The covariance of the coefficients counts as if so many more evaluations had shown the one assumed beforehand."""


@dataclass(frozen=True)
class Factors:
    """What earlier evaluations show about each turn and about a new model.

    Attributes:
        design: Shape (turns, p): 1, easiness d_j, factors v_j.
        mean: Shape (p,), expected coefficients of a new model.
        covariance: Shape (p, p), of these coefficients.
        evaluations: Number of evaluations behind it.
    """

    design: Floats
    mean: Floats
    covariance: Floats
    evaluations: int


def expit(x: Floats) -> Floats:
    """Returns 1 / (1 + exp(-x)) without overflow, about three times as fast as by logaddexp."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)), dtype=np.float64)


def fit_factors(history: History, settings: DrawSettings | None = None) -> Factors | None:
    """Fits the factor model.

    Args:
        history: Earlier evaluations; evaluations without any outcome are left out. Turns without history are expected
            to be as easy as the average.
        settings: Those of today by default.

    Returns:
        The factors; None without any outcome, or if no turn differs from another one.
    """
    known = ~np.isnan(history.outcomes)
    table, known = history.outcomes[:, known.any(0)], known[:, known.any(0)]
    if table.size == 0 or not known.any() or len(np.unique(table[known])) < 2:
        return None
    turns, evaluations = table.shape
    filled = np.where(known, table, 0.0)
    by_turn = (filled.sum(1) + 1.0) / (known.sum(1) + 2.0)
    by_evaluation = (filled.sum(0) + 1.0) / (known.sum(0) + 2.0)
    easiness = np.log(by_turn / (1.0 - by_turn))
    ability = np.log(by_evaluation / (1.0 - by_evaluation))
    ability -= ability.mean()
    k = 1 if evaluations >= _ENOUGH_FOR_FACTORS and turns > 2 else 0
    residual = np.where(known, table - by_turn[:, None] - by_evaluation + by_evaluation.mean(), 0.0)
    left, _, right = np.linalg.svd(residual, full_matrices=False)
    items, persons = left[:, :k] * np.sqrt(turns) * 0.5, right[:k].T * np.sqrt(evaluations)
    precision = np.r_[1.0 / _WIDE**2, np.ones(k)]
    for _ in range(_ROUNDS):
        found = _newton(
            np.column_stack([np.ones(turns), items]), filled, known, np.column_stack([ability, persons]), precision,
            np.zeros(k + 1), easiness[:, None],
        )  # fmt: skip
        ability, persons = found[:, 0], found[:, 1:]
        easiness, ability = easiness + ability.mean(), ability - ability.mean()
        found = _newton(
            np.column_stack([np.ones(evaluations), persons]), filled.T, known.T, np.column_stack([easiness, items]),
            precision, np.r_[easiness.mean(), np.zeros(k)], ability[:, None],
        )  # fmt: skip
        easiness, items = found[:, 0], found[:, 1:]
    coefficients = np.column_stack([ability, np.ones(evaluations), persons])
    return Factors(
        np.column_stack([np.ones(turns), easiness, items]),
        *_expected(coefficients, settings or DrawSettings()),
        evaluations,
    )


def _expected(coefficients: Floats, settings: DrawSettings) -> tuple[Floats, Floats]:
    """Mean and covariance of a new model's coefficients; the fewer earlier models, the wider."""
    evaluations, p = coefficients.shape
    mean = coefficients.mean(0)
    centred = coefficients - mean
    assumed = np.diag(np.r_[1.0, 0.0, np.ones(p - 2)])
    spread = (centred.T @ centred + _ALIKE * assumed) / (evaluations + _ALIKE - 1)
    # Of one or two evaluations, easiness is fitted roughly, so its coefficient can be far from 1.
    freedom = np.r_[0.05, settings.freedom + 1.0 / evaluations, np.full(p - 2, 0.05)]
    return mean, settings.inflation * spread + np.diag(freedom)


def _newton(x: Floats, y: Floats, known: Floats, b: Floats, precision: Floats, mean: Floats, offset: Floats) -> Floats:
    """Two damped Newton steps of many logistic regressions at once.

    Args:
        x: Shape (n, d), shared by all.
        y: Shape (n, m), outcomes; 0 where unknown.
        known: Shape (n, m), True where known.
        b: Shape (m, d), coefficients so far.
        precision: Shape (d,), of the normal prior.
        mean: Shape (d,), of the prior.
        offset: Shape (n, 1), added to all log odds.
    """
    d = x.shape[1]
    products = (x[:, :, None] * x[:, None, :]).reshape(len(x), d * d)
    for _ in range(2):
        p = expit(x @ b.T + offset)
        gradient = np.where(known, y - p, 0.0).T @ x - (b - mean) * precision
        hessian = (np.where(known, p * (1.0 - p), 0.0).T @ products).reshape(-1, d, d) + np.diag(precision)
        b = b + np.clip(np.linalg.solve(hessian, gradient[..., None])[..., 0], -1.0, 1.0)
    return b
