"""How often the intervals hold the truth, by simulation.

A conversation has 1 to 8 turns and its own accuracy, from a beta distribution around the model's whose intra-class
correlation is 0 (turns independent) or 0.3 (conversations differ much).
"""

import itertools
import math

import numpy as np
import pytest

from eval_pipeline.statistics.cost import cost_per_success
from eval_pipeline.statistics.curves.ceiling import complexity_ceiling
from eval_pipeline.statistics.intervals import estimate_mean, estimate_rate

CORRELATED = 0.3


def simulated(
    rng: np.random.Generator, clusters: int, accuracy: float, correlation: float
) -> tuple[np.ndarray, np.ndarray]:
    sizes = rng.integers(1, 9, clusters)
    own = np.full(clusters, accuracy)
    if correlation > 0:
        strength = 1 / correlation - 1
        own = rng.beta(accuracy * strength, (1 - accuracy) * strength, clusters)
    labels = np.repeat(np.arange(clusters), sizes)
    return (rng.random(labels.size) < own[labels]).astype(float), labels


def rate_coverage(clusters: int, accuracy: float, correlation: float, times: int, seed: int = 0) -> tuple[float, float]:
    """Share of intervals that hold the accuracy, and their mean width."""
    rng = np.random.default_rng([seed, clusters, round(1000 * accuracy), round(1000 * correlation)])
    held, width = 0, 0.0
    for _ in range(times):
        found = estimate_rate(*simulated(rng, clusters, accuracy, correlation))
        held += found.low <= accuracy <= found.high
        width += found.high - found.low
    return held / times, width / times


@pytest.mark.parametrize(
    ("clusters", "accuracy", "correlation"),
    [
        (20, 0.5, 0.0),
        (20, 0.9, CORRELATED),
        (60, 0.1, CORRELATED),
        (60, 0.98, 0.0),
        (119, 0.02, 0.0),
        (119, 0.7, CORRELATED),
    ],
)
def test_rate_intervals_hold_the_truth(clusters: int, accuracy: float, correlation: float) -> None:
    coverage, _ = rate_coverage(clusters, accuracy, correlation, times=400)
    assert 0.90 <= coverage <= 1.0


def test_mean_and_cost_intervals_hold_the_truth() -> None:
    rng, held = np.random.default_rng(1), 0
    for _ in range(400):
        sizes = rng.integers(1, 9, 40)
        labels = np.repeat(np.arange(40), sizes)
        found = estimate_mean(3 + rng.normal(0, 1, 40)[labels] + rng.normal(0, 1, labels.size), labels)
        held += found.low <= 3 <= found.high
    assert 0.925 <= held / 400 <= 0.975
    rng, held = np.random.default_rng(2), 0
    # Cost falls where a conversation succeeds: E t = 0.6 * 800 + 0.4 * 1400, so the true ratio is 1040 / 0.6.
    for _ in range(400):
        won = rng.random(60) < 0.6
        cost = rng.gamma(4, np.where(won, 200, 350))
        found = cost_per_success(cost, won)
        held += found.low <= 1040 / 0.6 <= found.high
    assert 0.92 <= held / 400 <= 0.98


@pytest.mark.soak
def test_rate_coverage_over_the_whole_grid() -> None:
    """The figures of docs/statistics.md."""
    print("\nclusters accuracy correlation  coverage  width   (20,000 simulations a cell)")
    cells = itertools.product((20, 40, 80, 119, 200, 400), (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98), (0.0, CORRELATED))
    coverages = []
    for cell in cells:
        coverage, width = rate_coverage(*cell, times=20_000, seed=2)
        coverages.append(coverage)
        print(*cell, f"{coverage:.3f}", f"{width:.3f}")
    print(f"lowest {min(coverages):.3f}, mean {np.mean(coverages):.3f}, highest {max(coverages):.3f}")
    assert min(coverages) >= 0.90
    assert 0.94 <= np.mean(coverages) <= 0.97


@pytest.mark.soak
def test_ceiling_intervals_hold_the_truth() -> None:
    """The truth is the last level whose mean accuracy over conversations is at least a half.

    With log odds of 2 - level / 2 the true curve meets the threshold at level 4, where the ceiling jumps.
    """
    rng = np.random.default_rng(3)
    levels_of_one = np.arange(1.0, 9.0)
    nodes = np.random.default_rng(0).normal(0, 1, 200_000)
    print("\nclusters  log odds        truth  coverage   (300 simulations a cell)")
    for clusters, start in itertools.product((40, 150), (2.0, 2.25)):
        odds = start - 0.5 * levels_of_one
        truth = levels_of_one[[(1 / (1 + np.exp(-(o + nodes)))).mean() >= 0.5 - 1e-3 for o in odds]].max()
        labels, levels, held = np.repeat(np.arange(clusters), 8), np.tile(levels_of_one, clusters), 0
        for _ in range(300):
            chance = 1 / (1 + np.exp(-(start - 0.5 * levels + rng.normal(0, 1, clusters)[labels])))
            found = complexity_ceiling(levels, rng.random(levels.size) < chance, labels, draws=500)
            low = -math.inf if found.ceiling_low is None else found.ceiling_low
            high = math.inf if found.ceiling_high is None else found.ceiling_high
            held += low <= truth <= high
        print(f"{clusters:8d}  {start:.2f} - level/2  {truth:5.0f}  {held / 300:8.3f}")
        assert held / 300 >= 0.90
