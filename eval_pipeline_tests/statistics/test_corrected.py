"""Shares corrected by people's ratings of a stratified sample: the textbook, every possible draw, PPI++, simulation."""

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from eval_pipeline.statistics.samples.corrected import drawn_bias, drawn_corrected_rate
from eval_pipeline.statistics.samples.ppi import PredictionPowered, prediction_powered_mean
from eval_pipeline.statistics.samples.sampling import LONE_MEMBER, NOTHING_DRAWN, UNSEEN_STRATUM, Strata, drawn_rate
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.statistics.test_sampling import strata


def test_corrected_shares_are_the_textbooks_difference_estimator() -> None:
    # By hand: 10 of 100, predictions right 60 times; errors of the sample sum to -1, so the share is 0.6 + 0.1.
    y, f = [1, 1, 1, 1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    found = drawn_corrected_rate(y, f, [True] * 10, strata([0] * 10, [100]), 0.6, weight=1.0)
    assert found.value == pytest.approx(0.6 + 0.1)
    # s2 of the errors 1, 0 x 9 is 0.1
    assert found.se == pytest.approx((0.9 * 0.1 / 10) ** 0.5)
    assert (found.n, found.population) == (10, pytest.approx(100.0))
    y, domain = [1, 1, 0, 0, 1, 0, 0, 0], [True, True, True, False, True, True, True, True]
    of = strata([0] * 4 + [1] * 4, [80, 20])
    plain, found = drawn_rate(y, domain, of), drawn_corrected_rate(y, [0.0] * 8, domain, of, 0.0)
    assert (found.value, found.se) == (pytest.approx(plain.value), pytest.approx(plain.se))
    assert found.n == plain.n == 7
    found = drawn_corrected_rate([1, 0, 1, 1], [1, 1, 1, 0], [True] * 4, strata([0, 0, 1, 1], [2, 2]), 0.75)
    assert (found.value, found.se, found.low, found.high) == (0.75, 0.0, 0.75, 0.75)
    # By hand: weights 10; in the group 1, 1, 0 of three rated, predictions 1, 0, 0, and 0 of one not rated.
    y, f, domain = [1, 1, 0, 0, 1, 0], [1, 0, 0, 0, 1, 1], [True, True, True, False, True, True]
    group = [True, True, True, True, False, False]
    found = drawn_corrected_rate(y, f, domain, strata([0] * 6, [60]), 0.5, group=group, weight=0.5)
    assert (found.n, found.population) == (3, pytest.approx(30.0))
    assert found.value == pytest.approx(2 / 3 + 0.5 * (0.5 - 1 / 4))
    assert prediction_powered_mean([1.0], [1.0], [1.0]).reason == "fewer than two conversations are reviewed"
    assert prediction_powered_mean([1.0, 0.0], [1.0, 1.0], [1.0]).weight == 0.0, "predictions that are all alike"


def test_of_one_kind_it_is_prediction_powered_inference() -> None:
    """`prediction_powered_mean` weighs the mean of those not rated; of all members that is lambda (1 + n / N)."""
    rng = np.random.default_rng(2)
    y = (rng.random(300) < 0.7).astype(float)
    f = np.where(rng.random(300) < 0.85, y, 1 - y)
    seen, rest = slice(0, 60), slice(60, 300)
    theirs = prediction_powered_mean(y[seen], f[seen], f[rest], weight=0.6)
    one = strata([0] * 60, [300])
    mine = drawn_corrected_rate(y[seen], f[seen], [True] * 60, one, float(f.mean()), weight=0.6 * (1 + 60 / 240))
    assert mine.value == pytest.approx(theirs.value, abs=1e-12)
    best = drawn_corrected_rate(y[seen], f[seen], [True] * 60, one, float(f.mean()))
    assert best.value == pytest.approx(prediction_powered_mean(y[seen], f[seen], f[rest]).value, abs=0.01)
    assert best.se <= mine.se * 1.05


def test_every_possible_draw_together_gives_the_truth() -> None:
    y, f = [[1, 1, 0, 1, 1], [0, 1, 0]], [[1, 0, 0, 1, 1], [1, 1, 0]]
    values = []
    for one, other in product(combinations(range(5), 3), combinations(range(3), 2)):
        ratings = [y[0][i] for i in one] + [y[1][i] for i in other]
        said = [f[0][i] for i in one] + [f[1][i] for i in other]
        of = strata([0] * 3 + [1] * 2, [5, 3])
        values.append(drawn_corrected_rate(ratings, said, [True] * 5, of, 5 / 8, weight=0.8).value)
    # The estimate itself is unbiased; its value is cut to 0..1 only where it leaves that range.
    assert all(value is not None and 0.0 < value < 1.0 for value in values)
    assert np.mean(values) == pytest.approx(5 / 8, abs=1e-12)  # type: ignore[arg-type]


def simulated(agreement: float, by: str, repeats: int) -> tuple[float, float, float, float]:
    """Share of intervals with the truth, their width, that of the plain ones, and the mean error in standard errors.

    1,000 answers of which 60 are rated, drawn from all alike or from what the metric calls right and wrong; people
    cannot rate one in twenty.
    """
    rng = np.random.default_rng(8)
    y = (rng.random(1000) < 0.8).astype(float)
    f = np.where(rng.random(1000) < agreement, y, 1 - y)
    can = rng.random(1000) < 0.95
    truth = y[can].mean()
    kinds = np.zeros(1000, dtype=np.int64) if by == "all" else f.astype(np.int64)
    sizes = np.bincount(kinds)
    inside, width, plain, errors = 0, 0.0, 0.0, []
    for _ in range(repeats):
        drawn = np.concatenate(
            [rng.choice(np.flatnonzero(kinds == h), 60 // len(sizes), replace=False) for h in range(len(sizes))]
        )
        of = Strata(kinds[drawn], sizes)
        found = drawn_corrected_rate(y[drawn], f[drawn], can[drawn], of, float(f.mean()))
        other = drawn_rate(y[drawn], can[drawn], of)
        inside += found.low <= truth <= found.high
        width, plain = width + found.high - found.low, plain + other.high - other.low
        errors.append(found.value - truth)
    return inside / repeats, width / repeats, plain / repeats, float(np.mean(errors) / np.std(errors))


@pytest.mark.parametrize("by", ["all", "verdict"])
def test_intervals_hold_and_good_predictions_make_them_narrow(by: str) -> None:
    covered, width, plain, bias = simulated(0.92, by, 300)
    assert covered >= 0.9 and (covered <= 0.99 or by == "verdict"), "few errors of a kind widen the interval"
    assert width < (0.8 if by == "all" else 1.02) * plain, "from kinds by verdict, the plain figure knows it already"
    assert abs(bias) < 0.3
    if by == "all":
        covered, width, plain, _ = simulated(0.5, by, 100)
        assert covered >= 0.88 and width < 1.05 * plain, "predictions without value do no harm"


@pytest.mark.soak
@pytest.mark.parametrize("agreement", [0.5, 0.8, 0.92, 0.99])
@pytest.mark.parametrize("by", ["all", "verdict"])
def test_coverage_many_times(agreement: float, by: str) -> None:
    covered, width, plain, bias = simulated(agreement, by, 5000)
    print(
        f"agreement {agreement}, drawn by {by}: covered {covered:.4f}, width {width:.3f}, plain {plain:.3f}, {bias:.2f}"
    )
    assert covered >= 0.93


def test_a_bias_is_the_mean_of_who_is_too_kind() -> None:
    """By hand: errors 1, 1, -1, 0 of 4 of 40, and 0, 0 of 2 of 10: 40/50 of 1/4."""
    of = strata([0] * 4 + [1] * 2, [40, 10])
    found = drawn_bias([1, 1, 0, 1, 0, 0], [0, 0, 1, 1, 0, 0], [True] * 6, of)
    assert found.value == pytest.approx(0.8 / 4)
    jackknife = 0.8**2 * 0.9 * (11 / 12) / 4  # s2 of 1, 1, -1, 0 is 11/12
    alike = 0.2**2 * 0.8 * 3 / 16 / 2  # two zeros: one of four would differ
    assert found.se == pytest.approx((jackknife + alike) ** 0.5)
    assert found.low < 0.0 < 0.2 < (found.high or 0.0)


@pytest.mark.parametrize(
    ("codes", "domain", "reason"),
    [([0, 0], [True, True], UNSEEN_STRATUM), ([0], [True], LONE_MEMBER), ([0, 0, 1], [False] * 3, NOTHING_DRAWN)],
)
def test_what_cannot_be_told_has_a_reason(codes: list[int], domain: list[bool], reason: str) -> None:
    of, y = strata(codes, [10] * (1 + (codes != [0]))), [1, 0, 1][: len(codes)]
    for found in (drawn_corrected_rate(y, y, domain, of, 0.5), drawn_bias(y, y, domain, of)):
        assert (found.low, found.high, found.reason) == (None, None, reason)


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
    assert each.se == pytest.approx(alone.se, rel=0.02)
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
def test_coverage_by_conversations_many_times(reviews: int, agreement: float) -> None:
    share, width = covered(10_000, 119, reviews, agreement)
    print(f"{reviews} reviews, judge agrees in {agreement}: covered {share:.4f}, mean width {width:.3f}")
    assert 0.93 <= share <= 0.97
