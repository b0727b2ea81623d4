"""The paired test and the drift verdict by simulation: false alarms, power at the detectable difference, nights.

Two models share the difficulty of conversations: each has its own accuracy from a beta distribution around the models'
whose intra-class correlation is 0 or 0.3, and 1 to 8 turns. Every test has a short form in the normal suite and the
whole campaign, whose figures are in docs/statistics.md, as a soak.
"""

import itertools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pytest

from eval_pipeline.analysis.comparisons.compared import DRIFT_DOWN, LOSS, NO_CHANGE
from eval_pipeline.analysis.comparisons.scored import ScoredEvaluation
from eval_pipeline.analysis.comparisons.trends import night_tests, night_verdict
from eval_pipeline.statistics.pairs.paired import PairedDifference, paired_difference

CORRELATED = 0.3
GRID = tuple(itertools.product((20, 40, 119, 400), (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98), (0.0, CORRELATED)))
"""Clusters, accuracy, correlation within them."""
NIGHTS, TURNS, DROP, DROPS_ON = 10, 2_000, 0.06, 5


class Pairs(NamedTuple):
    """Two models' verdicts on the same turns."""

    first: np.ndarray
    second: np.ndarray
    clusters: np.ndarray


def chances(rng: np.random.Generator, clusters: int, accuracy: float, correlation: float) -> np.ndarray:
    """Accuracy of each conversation."""
    if correlation == 0:
        return np.full(clusters, accuracy)
    strength = 1 / correlation - 1
    return rng.beta(accuracy * strength, (1 - accuracy) * strength, clusters)


def pairs(rng: np.random.Generator, clusters: int, accuracy: float, correlation: float, worse: float) -> Pairs:
    """Verdicts of a model, and of one whose right answers come out wrong with the chance that costs ``worse``."""
    labels = np.repeat(np.arange(clusters), rng.integers(1, 9, clusters))
    chance = chances(rng, clusters, accuracy, correlation)[labels]
    kept = 1 - worse / accuracy
    return Pairs(
        (rng.random(labels.size) < chance).astype(float),
        (rng.random(labels.size) < chance * kept).astype(float),
        labels,
    )


def comparisons(cell: tuple[int, float, float], worse: float, times: int, seed: int) -> list[PairedDifference]:
    clusters, accuracy, correlation = cell
    rng = np.random.default_rng([seed, clusters, round(1000 * accuracy), round(1000 * correlation)])
    return [paired_difference(*pairs(rng, clusters, accuracy, correlation, worse)) for _ in range(times)]


def rejected(found: Iterable[PairedDifference]) -> float:
    return float(np.mean([one.p_value is not None and one.p_value < 0.05 for one in found]))


def by_t(found: list[PairedDifference]) -> float:
    """Share of the comparisons that had enough changes for t."""
    return float(np.mean([one.method == "t_clustered" for one in found]))


def detectable(cell: tuple[int, float, float], seed: int) -> float:
    """The true loss that such comparisons call their minimum detectable difference, by going back and forth."""
    worse = 0.0
    for round_ in range(6):
        found = [one.detectable for one in comparisons(cell, worse, 40 if round_ < 4 else 400, seed)]
        worse = float(np.mean([1.0 if one is None else one for one in found]))
        if worse >= cell[1]:
            break
    return worse


def nights(rng: np.random.Generator, drop: float) -> list[str | None]:
    """Verdicts on the nights of one history, from the second on: 2,000 turns, some of whose answers change nightly."""
    sizes = rng.integers(1, 9, TURNS)
    labels = np.repeat(np.arange(TURNS), sizes)[:TURNS]
    chance = chances(rng, labels.max() + 1, 0.8, CORRELATED)[labels]
    places, verdicts, series = np.arange(TURNS), [], []
    for night in range(1, NIGHTS + 1):
        kept = 1 - (drop / 0.8 if night >= DROPS_ON else 0.0)
        correct = (rng.random(TURNS) < chance * kept).astype(float)
        scored = ScoredEvaluation(places, labels, {"correct": correct}, places)
        if series:
            verdicts.append(night_verdict(night_tests(scored, {"previous": series[-1], "first": series[0]})))
        series.append(scored)
    return verdicts


def histories(times: int, drop: float, seed: int) -> np.ndarray:
    """Verdicts by history and night."""
    return np.array([nights(np.random.default_rng([seed, number]), drop) for number in range(times)], dtype=object)


@pytest.mark.parametrize("cell", [(40, 0.5, 0.0), (119, 0.9, CORRELATED), (119, 0.1, 0.0)])
def test_equal_models_are_seldom_called_different(cell: tuple[int, float, float]) -> None:
    assert 0.02 <= rejected(comparisons(cell, 0.0, 600, 1)) <= 0.08


def test_with_few_changes_false_alarms_are_rarer_still() -> None:
    found = comparisons((40, 0.02, 0.0), 0.0, 400, 1)
    assert by_t(found) < 0.3
    assert rejected(found) <= 0.05


@pytest.mark.parametrize("cell", [(119, 0.8, CORRELATED), (119, 0.5, 0.0)])
def test_the_minimum_detectable_difference_is_found_four_times_in_five(cell: tuple[int, float, float]) -> None:
    assert 0.73 <= rejected(comparisons(cell, detectable(cell, 2), 500, 3)) <= 0.87


def test_a_loss_of_six_points_is_told_on_its_night_and_an_unchanged_model_left_alone() -> None:
    lost, same = histories(15, DROP, 1), histories(15, 0.0, 2)
    assert np.mean(lost[:, DROPS_ON - 2] == LOSS) >= 0.9
    assert np.mean(same != NO_CHANGE) <= 0.1


@pytest.mark.soak
def test_false_alarms_over_the_whole_grid() -> None:
    print("\nclusters accuracy correlation  by t  false alarms   (20,000 comparisons a cell)")
    normal, few = [], []
    for cell in GRID:
        found = comparisons(cell, 0.0, 20_000, 1)
        (normal if by_t(found) >= 0.95 else few).append(rejected(found))
        print(*cell, f"{by_t(found):.0%}", f"{rejected(found):.3f}")
    assert all(0.04 <= alarms <= 0.06 for alarms in normal)
    assert max(few) <= 0.06


@pytest.mark.soak
def test_power_over_the_whole_grid() -> None:
    print("\nclusters accuracy correlation  detectable  power   (4,000 comparisons a cell)")
    powers: list[float] = []
    most: list[float] = []
    for cell in GRID:
        worse = detectable(cell, 2)
        if worse >= 0.9 * cell[1]:
            print(*cell, f"{worse:.3f}", "a model cannot lose as much")
            continue
        found = comparisons(cell, worse, 4_000, 3)
        few = by_t(found) < 0.95
        print(*cell, f"{worse:.3f}", f"{rejected(found):.3f}", "few changes" if few else "")
        if not few:
            (most if worse > 0.5 * cell[1] else powers).append(rejected(found))
    assert all(0.75 <= power <= 0.85 for power in powers)
    # Rare right answers, of which more than half are lost: what is left varies less than the error says, and more is
    # found than promised.
    assert all(0.75 <= power <= 0.90 for power in most)


@pytest.mark.soak
def test_drift_over_hundreds_of_histories() -> None:
    # More of the unchanged ones: a lucky first night shows on all nights after it, so that 200 of them know the share
    # of flagged nights to a point only, and 3,000 to 0.2.
    lost, same = histories(200, DROP, 3), histories(3_000, 0.0, 4)
    told = np.mean(lost[:, DROPS_ON - 2] == LOSS)
    alarms, wrong_losses = np.mean(same != NO_CHANGE), np.mean((same == LOSS) | (same == DRIFT_DOWN))
    print(f"\nloss told on its night {told:.3f}; flagged without change {alarms:.3f}, as loss {wrong_losses:.3f}")
    assert told >= 0.9
    assert alarms <= 0.05
    assert wrong_losses <= 0.03
