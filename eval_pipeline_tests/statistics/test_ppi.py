"""Means as reviewers would say: as `ppi-python` has them, and with intervals that hold for turns of conversations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eval_pipeline.statistics.ppi import PredictionPowered, prediction_powered_mean
from eval_pipeline_tests.goldens import golden

GOLDEN = golden("prediction_powered.yaml")


@pytest.mark.parametrize("case", GOLDEN, ids=[case["id"] for case in GOLDEN])
def test_as_the_authors_have_it(case: dict[str, Any]) -> None:
    given = {name: case[name] for name in ("labels", "predictions", "unlabelled", "confidence")}
    found = prediction_powered_mean(**given)
    assert [found.value, found.low, found.high] == pytest.approx(case["expected"], abs=1e-9, rel=0)


def test_turns_that_are_conversations_of_their_own_give_nearly_the_unclustered_error() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.7).astype(float)
    f = np.where(rng.random(400) < 0.9, y, 1 - y)
    alone = prediction_powered_mean(y[:100], f[:100], f[100:])
    each = prediction_powered_mean(
        y[:100], f[:100], f[100:], clusters=np.arange(100), unlabelled_clusters=np.arange(100, 400)
    )
    assert alone.se is not None and each.se == pytest.approx(alone.se, rel=0.02)
    assert each.value == pytest.approx(alone.value, abs=0.01) and 0.5 < each.weight < 1.0


def one(rng: np.random.Generator, conversations: int, reviews: int, agreement: float) -> PredictionPowered:
    """Right in 0.7, correlated within conversations (0.3); a judge that agrees so often; reviews are a uniform draw."""
    sizes = rng.integers(1, 9, conversations)
    of = np.repeat(np.arange(conversations), sizes)
    shared = rng.random(conversations) < 0.7
    y = np.where(rng.random(len(of)) < np.sqrt(0.3), shared[of], rng.random(len(of)) < 0.7).astype(float)
    f = np.where(rng.random(len(of)) < agreement, y, 1 - y)
    order = rng.permutation(len(of))
    seen, rest = order[:reviews], order[reviews:]
    return prediction_powered_mean(y[seen], f[seen], f[rest], clusters=of[seen], unlabelled_clusters=of[rest])


def covered(repeats: int, conversations: int, reviews: int, agreement: float) -> tuple[float, float]:
    """Share of intervals with the truth, 0.7, and the mean width."""
    rng = np.random.default_rng(reviews)
    ends = np.array([(e.low, e.high) for e in (one(rng, conversations, reviews, agreement) for _ in range(repeats))])
    return float(((ends[:, 0] <= 0.7) & (ends[:, 1] >= 0.7)).mean()), float((ends[:, 1] - ends[:, 0]).mean())


def test_intervals_hold_for_conversations_and_a_good_judge_makes_them_narrow() -> None:
    good, narrow = covered(600, 119, 60, 0.9)
    blind, wide = covered(600, 119, 60, 0.5)
    assert 0.925 <= good <= 0.975 and 0.925 <= blind <= 0.975
    assert narrow < 0.85 * wide


@pytest.mark.soak
@pytest.mark.parametrize("reviews", [30, 60, 120])
@pytest.mark.parametrize("agreement", [0.5, 0.8, 0.95])
def test_coverage_many_times(reviews: int, agreement: float) -> None:
    share, width = covered(10_000, 119, reviews, agreement)
    print(f"{reviews} reviews, judge agrees in {agreement}: covered {share:.4f}, mean width {width:.3f}")
    assert 0.93 <= share <= 0.97


def test_bad_input_is_told() -> None:
    assert prediction_powered_mean([1.0], [1.0], [1.0]).reason == "fewer than two conversations are reviewed"
    assert prediction_powered_mean([1.0, 0.0], [1.0, 1.0], [1.0]).weight == 0.0, "predictions that are all alike"
    with pytest.raises(ValueError, match="are no sample"):
        prediction_powered_mean([], [], [1.0])
    with pytest.raises(ValueError, match="must not be missing"):
        prediction_powered_mean([np.nan], [1.0], [1.0])
    with pytest.raises(ValueError, match="or of neither"):
        prediction_powered_mean([1.0, 0.0], [1.0, 1.0], [1.0], clusters=[1, 2])
