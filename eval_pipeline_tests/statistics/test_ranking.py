"""Rankings of several models: the family's error holds over all pairs and looks, and what differs is found early."""

from itertools import combinations

import numpy as np
import pytest

from eval_pipeline.statistics.adaptive.ranking import pair_verdict
from eval_pipeline.statistics.adaptive.units import Floats
from eval_pipeline.statistics.items import item_history

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


@pytest.mark.parametrize("times", [60, pytest.param(20_000, marks=pytest.mark.soak)])
def test_equal_models_are_rarely_told_apart_in_any_pair_at_any_look(times: int) -> None:
    """In the share of rankings in which any two of four equal models are told apart."""
    rng = np.random.default_rng(times)
    found = sum(bool(ranked(rng, [0.0] * 4)[0]) for _ in range(times)) / times
    print(f"four equal models, six looks: some pair told apart in {found:.4f}")
    assert found <= 0.05 + (2 if times == 20_000 else 2.5) * (0.05 * 0.95 / times) ** 0.5


def test_what_differs_is_ranked_and_not_all_is_asked() -> None:
    rng = np.random.default_rng(3)
    found = [ranked(rng, [-1.5, 0.0, 1.5]) for _ in range(10)]
    whole = [decided for decided, _ in found if len(decided) == 3]
    assert len(whole) >= 8 and all(set(decided.values()) == {1} for decided, _ in found)
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


def history(evaluations: int = 30, turns: int = 60) -> np.ndarray:
    rng = np.random.default_rng(2)
    ability = np.linspace(-2, 2, evaluations)
    odds = ability + rng.normal(size=(turns, 1))
    return (rng.random(odds.shape) < 1 / (1 + np.exp(-odds))).astype(float)


def test_turns_are_sorted_by_what_they_tell() -> None:
    table = history()
    table[0], table[1] = 1.0, 0.0
    table[2] = (np.arange(30) < 15).astype(float)  # weak models right, good ones wrong
    table[3] = (np.arange(30) >= 15).astype(float)
    table[4] = np.nan
    table[4, :4] = 1.0
    table[5:, ::7] = np.nan
    found = item_history(table)
    kinds = ["all right", "all wrong", "suspicious", "tells apart", "too little history"]
    assert [item.kind for item in found[:5]] == kinds
    assert {item.kind for item in found[5:]} <= {"tells apart", "all right", "all wrong"}
    assert [item.difficulty for item in found[:5]] == [0.0, 1.0, 0.5, 0.5, 0.0]
    assert found[2].discrimination < -0.7
    assert found[3].discrimination > 0.5
    assert found[0].discrimination is found[1].discrimination is found[4].discrimination is None
    assert found[5].evaluations == 25


def test_discrimination_is_a_correlation_that_guesses_seldom_have_and_nothing_never() -> None:
    table = history(12, 20)
    rest = (table.sum(0) - table[7]) / 19
    assert item_history(table)[7].discrimination == pytest.approx(np.corrcoef(table[7], rest)[0, 1])
    table = (np.random.default_rng(0).random((500, 30)) < 0.5).astype(float)
    assert sum(item.kind == "suspicious" for item in item_history(table)) <= 1
    assert item_history(np.zeros((0, 3))) == []
    assert item_history([[np.nan, np.nan]])[0].difficulty is None
