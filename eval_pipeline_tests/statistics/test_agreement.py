"""Cohen's kappa against figures worked out by hand, and its interval against simulation."""

from __future__ import annotations

import numpy as np
import pytest

from eval_pipeline.statistics import cohens_kappa


def ratings(table: list[list[int]]) -> tuple[list[int], list[int]]:
    """Two raters' words from a confusion matrix."""
    pairs = [(i, j) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)]
    return [i for i, _ in pairs], [j for _, j in pairs]


@pytest.mark.parametrize(
    ("table", "observed", "kappa"),
    [
        # 35 of 50 agree; chance gives 25/50·30/50 + 25/50·20/50 = 0.5
        ([[20, 5], [10, 15]], 0.7, 0.4),
        ([[10, 0], [0, 10]], 1.0, 1.0),
        ([[0, 10], [10, 0]], 0.0, -1.0),
        # three words: 15 of 24 agree; chance (10·8 + 8·9 + 6·7)/24² = 194/576
        ([[6, 3, 1], [1, 5, 2], [1, 1, 4]], 15 / 24, (15 / 24 - 194 / 576) / (1 - 194 / 576)),
    ],
)
def test_kappa_is_agreement_beyond_chance(table: list[list[int]], observed: float, kappa: float) -> None:
    first, second = ratings(table)
    found = cohens_kappa(first, second, range(len(first)))
    assert found.observed == pytest.approx(observed)
    assert found.kappa == pytest.approx(kappa)
    assert found.n == found.clusters == len(first)


def test_without_ratings_there_is_no_kappa() -> None:
    found = cohens_kappa([], [], [])
    assert (found.n, found.kappa, found.observed, found.reason) == (0, None, None, "nothing was rated by both")


def test_full_agreement_by_chance_has_no_kappa() -> None:
    found = cohens_kappa([1, 1, 1], [1, 1, 1], [0, 1, 2])
    assert (found.observed, found.kappa, found.reason) == (1.0, None, "both gave everything the same rating")


def test_one_conversation_has_no_interval() -> None:
    found = cohens_kappa([0, 1, 1], [0, 1, 0], [7, 7, 7])
    assert found.kappa is not None
    assert (found.clusters, found.se, found.low, found.reason) == (1, None, None, "one conversation only")


def test_the_interval_covers_the_truth() -> None:
    """Two raters, clusters of 3 that share their difficulty; true kappa by the law of the draw."""
    rng = np.random.default_rng(1)
    truth, draws, hits = None, 300, 0
    big_first, big_second, _ = draw(rng, 40_000)
    truth = cohens_kappa(big_first, big_second, range(len(big_first))).kappa
    assert truth is not None
    for _ in range(draws):
        first, second, clusters = draw(rng, 60)
        found = cohens_kappa(first, second, clusters)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= truth <= found.high
    assert 0.90 <= hits / draws <= 0.99, hits / draws


def draw(rng: np.random.Generator, clusters: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ratings of so many clusters of three items."""
    groups = np.repeat(np.arange(clusters), 3)
    agrees = rng.uniform(0.6, 1.0, clusters)[groups]
    first = rng.integers(0, 2, len(groups))
    second = np.where(rng.uniform(size=len(groups)) < agrees, first, 1 - first)
    return first, second, groups
