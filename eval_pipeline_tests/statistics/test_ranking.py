"""Rankings of several models: the family's error holds over all pairs and looks, and what differs is found early."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from eval_pipeline.statistics.adaptive.ranking import pair_verdict
from eval_pipeline.statistics.adaptive.units import Floats

SCHEDULE = (30, 60, 105, 150, 210, 300)


def outcomes(rng: np.random.Generator, abilities: list[float]) -> tuple[Floats, Floats]:
    """Outcomes of models on 300 conversations of one to three turns, which are easy or hard for all; and clusters."""
    clusters = np.repeat(np.arange(300), rng.integers(1, 4, 300))
    easy = rng.normal(1.0, 1.2, 300)[clusters] + rng.normal(0.0, 0.7, len(clusters))
    own = rng.normal(0.0, 0.5, (len(abilities), 300))[:, clusters]
    chances = 1 / (1 + np.exp(-easy - own - np.array(abilities)[:, None]))
    return (rng.random(chances.shape) < chances).astype(float), clusters


def ranked(rng: np.random.Generator, abilities: list[float]) -> tuple[dict[tuple[int, int], int], float]:
    """The decided pairs, and the share of turns asked over all models, as `run --until ranked` asks them."""
    table, clusters = outcomes(rng, abilities)
    pairs = list(combinations(range(len(abilities)), 2))
    decided: dict[tuple[int, int], int] = {}
    order, asked = rng.permutation(300), 0
    open_to = set(range(len(abilities)))
    for look, n in enumerate(SCHEDULE, start=1):
        here = np.isin(clusters, order[:n])
        before = np.isin(clusters, order[: SCHEDULE[look - 2]]) if look > 1 else np.zeros_like(here)
        asked += len(open_to) * int((here & ~before).sum())
        for i, j in pairs:
            if (i, j) not in decided and (
                found := pair_verdict(
                    table[i, here], table[j, here], clusters[here],
                    asked=SCHEDULE[:look], looks=len(SCHEDULE), pairs=len(pairs),
                )
            ):  # fmt: skip
                decided[i, j] = found
        open_to = {model for pair in pairs if pair not in decided for model in pair}
    return decided, asked / table.size


def family_error(repeats: int, seed: int) -> float:
    """Share of rankings of four equal models in which any two are told apart."""
    rng = np.random.default_rng(seed)
    return sum(bool(ranked(rng, [0.0] * 4)[0]) for _ in range(repeats)) / repeats


def test_equal_models_are_rarely_told_apart_in_any_pair_at_any_look() -> None:
    assert family_error(120, seed=1) <= 0.05 + 2.5 * (0.05 * 0.95 / 120) ** 0.5


@pytest.mark.soak
def test_equal_models_are_rarely_told_apart_20_000_times() -> None:
    found = family_error(20_000, seed=2)
    print(f"four equal models, six looks: some pair told apart in {found:.4f}")
    assert found <= 0.05 + 2 * (0.05 * 0.95 / 20_000) ** 0.5


def test_what_differs_is_ranked_and_not_all_is_asked() -> None:
    rng = np.random.default_rng(3)
    found = [ranked(rng, [-1.5, 0.0, 1.5]) for _ in range(20)]
    whole = [decided for decided, _ in found if len(decided) == 3]
    assert len(whole) >= 17 and all(set(decided.values()) == {1} for decided, _ in found)
    assert np.mean([asked for _, asked in found]) < 0.5


def test_a_verdict_by_hand() -> None:
    """30 of 100 conversations fixed, none broken, is decided at any level; one fixed of two is not; nor is none."""
    first, second, clusters = np.zeros(100), np.r_[np.ones(30), np.zeros(70)], np.arange(100)
    ways = {"asked": (100,), "looks": 5, "pairs": 3}
    assert pair_verdict(first, second, clusters, **ways) == 1  # type: ignore[arg-type]
    assert pair_verdict(second, first, clusters, **ways) == -1  # type: ignore[arg-type]
    assert pair_verdict([0, 0], [1, 0], [0, 1], asked=(2,), looks=5, pairs=3) == 0
    assert pair_verdict(first, first, clusters, asked=(50, 100), looks=5, pairs=3) == 0
    # Nine fixed of nine have p = 2/512 = 0.0039: enough for one pair at the first of five looks (0.01), not for 20.
    nine = np.r_[np.ones(9), np.zeros(91)]
    assert pair_verdict(first, nine, clusters, asked=(100,), looks=5, pairs=1) == 1
    assert pair_verdict(first, nine, clusters, asked=(100,), looks=5, pairs=20) == 0
