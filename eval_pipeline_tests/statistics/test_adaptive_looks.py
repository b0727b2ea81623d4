"""Several looks err together as seldom as one; comparisons find what differs, and seldom what does not."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from eval_pipeline.statistics._special import t_critical
from eval_pipeline.statistics.adaptive import EARLIER, DifferenceSampler, Sampler
from eval_pipeline.statistics.adaptive.looks import critical, spending, student
from eval_pipeline.statistics.adaptive.spread import suite_spread
from eval_pipeline_tests import outside
from eval_pipeline_tests.statistics.adaptive_campaign import (
    MATRICES,
    clustered,
    clustered_decisions,
    decisions,
    effect,
    gains,
    matrix,
    stops,
    told,
)
from eval_pipeline_tests.statistics.test_adaptive import answers, factors_of, suite


def test_boundaries_are_those_of_the_literature_and_the_spent_error_ascends_to_all_of_it() -> None:
    # Linear spending, two looks of equal information: 2.241 and 2.125 (Lan and DeMets 1983).
    assert [critical(0.95, look, 2, range(1, look + 1)) for look in (1, 2)] == pytest.approx([2.2414, 2.125], abs=2e-3)
    assert critical(0.95, 1, 1) == pytest.approx(1.959964, abs=1e-6)
    assert critical(0.95, 2, 4) == pytest.approx(2.497705, abs=1e-6), "nothing known of the looks: Bonferroni"
    with pytest.raises(ValueError, match="information must grow"):
        critical(0.95, 2, 2, (2.0, 1.0))
    # By hand: between 20 and 35% of the suite, from 12 to 28%; a schedule that ends early spends all by its end.
    assert spending([20, 55, 100, 200]) == pytest.approx([0.03, 0.12 + 0.16 / 2, 0.62, 1.0])
    assert critical(0.95, 1, 2, spent=(0.2, 1.0)) == pytest.approx(2.5758, abs=1e-4)
    for spent in [(0.5,), (0.5, 0.5), (0.5, 1.1)]:
        with pytest.raises(ValueError, match="spent shares of 2 looks must grow"):
            critical(0.95, 1, 2, spent=spent)


@pytest.mark.parametrize("information", [(1, 2, 3, 4, 5), (1, 2, 4, 8, 16), (1, 5, 6, 6.5, 20)])
def test_all_looks_together_err_with_the_given_probability(information: tuple[float, ...]) -> None:
    steps = np.sqrt(np.diff((0.0, *information)))
    paths = np.cumsum(np.random.default_rng(1).normal(size=(200_000, 5)) * steps, axis=1) / np.sqrt(information)
    ends = [critical(0.95, look, 5, information[:look]) for look in range(1, 6)]
    assert 0.046 < float((np.abs(paths) > ends).any(axis=1).mean()) <= 0.0515


@pytest.mark.parametrize(
    ("sizes", "times"),
    [([1, 2, 3] * 60, 150), *(pytest.param(n, 20_000, marks=pytest.mark.soak) for n in ([1] * 300, [1, 2, 3, 6] * 40))],
)
def test_stopping_when_it_suits_errs_in_one_of_twenty_at_most(sizes: list[int], times: int) -> None:
    found = stops(suite(sizes), 5, range(times)).any(axis=1).mean()
    print(f"{len(sizes)} units of {min(sizes)} to {max(sizes)} turns: some interval of 5 wrong in {found:.4f}")
    assert found <= 0.05 + (0 if times == 20_000 else 2.5 * np.sqrt(0.05 * 0.95 / times))


def test_the_spread_of_clusters_that_are_not_asked_by_hand() -> None:
    """Four turns in two clusters, each with the variance 1/4: their sum, and 0.3 of the four products of a pair."""
    nothing, asked = np.zeros(4), np.array([False] * 4)
    found = suite_spread(nothing, nothing, np.full(4, 0.25), asked, np.array([0, 0, 1, 1]), 4)
    assert found.variance == pytest.approx(2 / 1 * (4 * 0.25 + 0.3 * 4 * 0.25) / 16)
    alone = suite_spread(nothing, nothing, np.full(4, 0.25), asked, np.arange(4), 4)
    assert alone.variance == pytest.approx(4 / 3 * 4 * 0.25 / 16)
    both = suite_spread(np.array([1.0, 1.0, -1.0, -1.0]), nothing, np.full(4, 0.25), ~asked, np.array([0, 0, 1, 1]), 4)
    assert both.freedom == 1, "of two clusters that differ, as always, by the same from their mean"


def test_students_t_by_a_series() -> None:
    """Against the exact t distribution."""
    for freedom in (1, 2, 3.99, 4, 10, 30, 300):
        for z in (1.96, 2.5758, 3.2):
            exact = t_critical(freedom, 2 * (1 - NormalDist().cdf(z)))
            assert student(z, freedom) == pytest.approx(exact, rel=0.015)
    assert student(0.0, 1.0) == 0.0


def test_strong_models_need_more_turns_for_the_same_confidence() -> None:
    """Squares of turns that are nearly all right are noisy, so that the interval is wider than by the normal."""
    units, rng = suite([1] * 400), np.random.default_rng(0)
    freedoms = []
    for rate in (0.5, 0.98):
        sampler = Sampler(units, None, seed=1)
        truth = (rng.random(400) < rate).astype(float)
        for n in (20, 80):  # at first, nothing is known of the model
            batch = sampler.draw(n)
            sampler.observe(batch, answers(units, batch, truth))
        freedoms.append(sampler._engine.freedom())
        found = sampler.estimate()
        assert found.value - found.low == pytest.approx(student(1.959964, freedoms[-1]) * found.se, rel=1e-6)
    assert freedoms[0] > 90 and freedoms[1] < 50


def test_a_comparison_is_mostly_decided_early_and_equal_models_are_rarely_told_apart() -> None:
    units = suite([1] * 1000)
    found = decisions(units, effect(1000), range(30))
    assert (found[:, 0] == 1).mean() >= 0.8 and not (found[:, 0] == -1).any()
    assert np.median(found[:, 1]) <= 0.7
    assert (decisions(units, 0.0, range(20))[:, 0] != 0).mean() <= 0.15


@pytest.mark.parametrize(
    ("cases", "of_cluster", "times"),
    [(200, 20, 60), *(pytest.param(120, n, 2000, marks=pytest.mark.soak) for n in (10, 20))],
)
def test_cases_of_a_cluster_are_not_independent(cases: int, of_cluster: int, times: int) -> None:
    """Models of which each is better at some clusters: with the clusters unknown, a third is decided."""
    units = clustered(cases, of_cluster)
    assert (clustered_decisions(units, 0.0, range(60), known=False)[:, 0] != 0).mean() > 0.15
    found = (clustered_decisions(units, 0.0, range(times))[:, 0] != 0).mean()
    print(f"{cases // of_cluster} clusters: equal models called different in {found:.4f}")
    assert found <= 0.05 + (2 if times == 2000 else 2.5) * np.sqrt(0.05 * 0.95 / times)


@pytest.mark.parametrize(("clusters", "known"), [(29, False), (30, True)])
def test_of_few_clusters_it_is_not_known_how_looks_correlate(clusters: int, known: bool) -> None:
    """By hand for Bonferroni: the second of two looks may err with half of 5%."""
    units, rng = clustered(clusters * 2, 2), np.random.default_rng(3)
    a, b = (rng.random(units.turns) < 0.7).astype(float), (rng.random(units.turns) < 0.7).astype(float)
    comparison = DifferenceSampler(units, None, a, seed=1)
    for size in (30, clusters * 2 - 30):
        batch = comparison.draw(size)
        comparison.observe(batch, answers(units, batch, b))
    found, single = comparison.estimate(0.95, 2, 2), comparison.estimate(0.975)
    assert (found.high - found.low < 0.999 * (single.high - single.low)) == known
    assert (found.high - found.low == pytest.approx(single.high - single.low)) != known


@pytest.mark.soak
def test_comparisons_20_000_times() -> None:
    units = suite([1] * 1000)
    wrong = (decisions(units, 0.0, range(20_000))[:, 0] != 0).mean()
    print(f"equal models called different in {wrong:.4f}")
    for difference in (effect(1000), -effect(1000)):
        found = decisions(units, difference, range(2000))
        power, median = (found[:, 0] == np.sign(difference)).mean(), np.median(found[:, 1])
        print(f"{difference:+.4f} found in {power:.3f}, at the median with {median:.2f} of turns")
        assert power >= 0.9 and median <= 0.5
    assert wrong <= 0.05


@pytest.mark.parametrize("clusters", [40, 8])
def test_a_whole_comparison_is_the_paired_one(clusters: int) -> None:
    """Once all is asked: the plain difference, with the error that comparisons of full evaluations have."""
    from eval_pipeline.statistics.pairs.paired import paired_difference

    names, rng = [place % clusters for place in range(40)], np.random.default_rng(0)
    units = replace(suite([1, 3, 2, 4] * 10), clusters=tuple(map(str, names)))
    a, b = (rng.integers(0, 2, units.turns).astype(float) for _ in range(2))
    comparison = DifferenceSampler(units, factors_of(units.turns, settings=EARLIER), a, seed=1)
    while comparison.left:
        batch = comparison.draw(15)
        comparison.observe(batch, answers(units, batch, b))
    whole = comparison.estimate()
    known = paired_difference(a, b, np.repeat(names, units.sizes))
    assert whole.value == pytest.approx(known.difference) and whole.se == pytest.approx(known.se)
    inside = comparison.estimate(beyond=False)
    assert inside.low == inside.high == pytest.approx(whole.value)
    with pytest.raises(ValueError, match="the baseline needs 100 outcomes"):
        DifferenceSampler(units, None, a[:-1], seed=0)


AIMS = {"crux": {0.1: 1.5, 0.2: 1.8, 0.3: 2.0}, "gsm": {0.1: 1.3, 0.2: 1.6, 0.3: 1.8}}
CELLS = [(name, share, aim) for name, aims in AIMS.items() for share, aim in aims.items()]


@outside.needs(MATRICES)
@pytest.mark.parametrize(("name", "share", "aim"), [("crux", 0.2, 1.8)])
def test_new_models_need_fewer_turns(name: str, share: float, aim: float) -> None:
    found = gains(matrix(name), share, 5)
    assert np.median([g.width for g in found]) >= aim - 0.2
    assert np.median([g.squares for g in found]) >= aim - 0.5
    assert np.mean([g.covered for g in found]) >= 0.88


@pytest.mark.soak
@outside.needs(MATRICES)
@pytest.mark.parametrize(("name", "share", "aim"), CELLS)
def test_new_models_need_fewer_turns_2000_times(name: str, share: float, aim: float) -> None:
    found = gains(matrix(name), share, 2000)
    print(told(f"{name}, {share:.0%} of turns", found))
    assert np.median([g.squares for g in found]) >= aim and np.median([g.width for g in found]) >= aim
    assert min(g.squares for g in found) >= 0.9 and min(g.honest for g in found) >= 0.9
    covered = [g.covered for g in found]
    assert 0.935 <= np.mean(covered) <= 0.97 and min(covered) >= 0.9
