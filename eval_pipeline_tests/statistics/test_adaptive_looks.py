"""Several looks err together as seldom as one; comparisons find what differs, and seldom what does not."""

from __future__ import annotations

import numpy as np
import pytest

from eval_pipeline.statistics.adaptive import Comparison, Sampler, Units
from eval_pipeline.statistics.adaptive.looks import critical
from eval_pipeline.statistics.adaptive.units import Floats
from eval_pipeline_tests.statistics.test_adaptive import answers, factors_of, suite


def test_boundaries_are_those_of_the_literature() -> None:
    """Linear spending, two looks of equal information: 2.241 and 2.125 (Lan and DeMets 1983)."""
    assert [critical(0.95, look, 2, range(1, look + 1)) for look in (1, 2)] == pytest.approx([2.2414, 2.125], abs=2e-3)
    assert critical(0.95, 1, 1) == pytest.approx(1.959964, abs=1e-6)
    assert critical(0.95, 2, 4) == pytest.approx(2.497705, abs=1e-6), "nothing known of the looks: Bonferroni"
    with pytest.raises(ValueError, match="information must grow"):
        critical(0.95, 2, 2, (2.0, 1.0))


@pytest.mark.parametrize("information", [(1, 2, 3, 4, 5), (1, 2, 4, 8, 16), (1, 5, 6, 6.5, 20)])
def test_all_looks_together_err_with_the_given_probability(information: tuple[float, ...]) -> None:
    steps = np.sqrt(np.diff((0.0, *information)))
    paths = np.cumsum(np.random.default_rng(1).normal(size=(200_000, 5)) * steps, axis=1) / np.sqrt(information)
    ends = [critical(0.95, look, 5, information[:look]) for look in range(1, 6)]
    assert 0.046 < float((np.abs(paths) > ends).any(axis=1).mean()) <= 0.0515


def stopped_wrongly(units: Units, repeats: int, looks: int, seed: int) -> float:
    """Share of evaluations of which some interval, taken after each batch of a third of the suite, misses the truth."""
    wrong = 0
    rng = np.random.default_rng(seed)
    factors = [factors_of(units.turns, seed=s) for s in range(4)]
    for repeat in range(repeats):
        found = factors[repeat % 4]
        assert found is not None
        odds = found.design @ (found.mean + rng.normal(size=len(found.mean)) * 0.7)
        within = np.repeat(rng.normal(size=len(units.ids)) * 0.8, units.sizes)
        truth = (rng.random(units.turns) < 1 / (1 + np.exp(-odds - within))).astype(float)
        sampler = Sampler(units, found if repeat % 5 else None, seed=repeat)
        for look in range(1, looks + 1):
            batch = sampler.draw(len(units.ids) // (2 * looks))
            sampler.observe(batch, answers(units, batch, truth))
            estimate = sampler.estimate(look=look, looks=looks)
            if not estimate.low <= truth.mean() <= estimate.high:
                wrong += 1
                break
    return wrong / repeats


def test_stopping_when_it_suits_errs_in_one_of_twenty_at_most() -> None:
    assert stopped_wrongly(suite([1, 2, 3] * 60), 150, 5, seed=1) <= 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / 150)


@pytest.mark.soak
@pytest.mark.parametrize("sizes", [[1] * 300, [1, 2, 3, 6] * 40])
def test_stopping_when_it_suits_20_000_times(sizes: list[int]) -> None:
    found = stopped_wrongly(suite(sizes), 20_000, 5, seed=2)
    print(f"{len(sizes)} units of {min(sizes)} to {max(sizes)} turns: some interval of 5 wrong in {found:.4f}")
    assert found <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 20_000)


def two_models(rng: np.random.Generator, turns: int, difference: float, rate: float = 0.8) -> tuple[Floats, Floats]:
    """Outcomes of A and B that correlate by 0.9; B is better by ``difference``."""
    changed = 2 * rate * (1 - rate) * 0.1
    broken, fixed = (changed - difference) / 2, (changed + difference) / 2
    u = rng.random(turns)
    b = (u < rate - broken) | ((u >= rate) & (u < rate + fixed))
    return (u < rate).astype(float), b.astype(float)


def decisions(turns: int, difference: float, repeats: int, looks: int, seed: int) -> tuple[Floats, Floats]:
    """Per comparison: 1, -1 or 0 (undecided), and the share of turns asked."""
    rng, units = np.random.default_rng(seed), suite([1] * turns)
    sizes = np.diff(np.round(np.linspace(0, turns, looks + 1))).astype(int)
    said, asked = np.zeros(repeats), np.ones(repeats)
    for repeat in range(repeats):
        a, b = two_models(rng, turns, difference)
        comparison = Comparison(units, None, a, seed=repeat)
        for look, n in enumerate(sizes, 1):
            batch = comparison.draw(int(n))
            comparison.observe(batch, answers(units, batch, b))
            estimate = comparison.estimate(look=look, looks=looks)
            if estimate.low > 0.0 or estimate.high < 0.0:
                said[repeat], asked[repeat] = np.sign(estimate.value), estimate.turns / turns
                break
    return said, asked


def effect(turns: int, rate: float = 0.8) -> float:
    """The difference that a comparison of all turns finds with power 0.95."""
    changed, found = 2 * rate * (1 - rate) * 0.1, 0.0
    for _ in range(50):
        found = float((1.959964 + 1.644854) * np.sqrt((changed - found**2) / turns))
    return found


def test_a_comparison_is_mostly_decided_early_and_equal_models_are_rarely_told_apart() -> None:
    said, asked = decisions(1000, effect(1000), 30, 5, seed=3)
    assert (said == 1).mean() >= 0.8 and not (said == -1).any()
    assert np.median(asked) <= 0.6
    said, _ = decisions(1000, 0.0, 20, 5, seed=4)
    assert (said != 0).mean() <= 0.15


@pytest.mark.soak
@pytest.mark.parametrize("looks", [4, 5, 10])
def test_comparisons_many_times(looks: int) -> None:
    wrong, _ = decisions(1000, 0.0, 20_000, looks, seed=5)
    print(f"{looks} looks: equal models called different in {(wrong != 0).mean():.4f}")
    for difference in (effect(1000), -effect(1000)):
        said, asked = decisions(1000, difference, 1000, looks, seed=6)
        power = (said == np.sign(difference)).mean()
        print(
            f"{looks} looks: {difference:+.4f} found in {power:.3f}, at the median with {np.median(asked):.2f} of turns"
        )
    assert (wrong != 0).mean() <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 20_000)


def test_a_whole_comparison_is_the_paired_one() -> None:
    """Once all is asked: the plain difference, with the error that comparisons of full evaluations have."""
    from eval_pipeline.statistics import paired_difference

    units, rng = suite([1, 3, 2, 4] * 10), np.random.default_rng(0)
    a, b = (rng.integers(0, 2, units.turns).astype(float) for _ in range(2))
    comparison = Comparison(units, factors_of(units.turns), a, seed=1)
    while comparison.left:
        batch = comparison.draw(15)
        comparison.observe(batch, answers(units, batch, b))
    whole = comparison.estimate()
    known = paired_difference(a, b, np.repeat(np.arange(40), units.sizes))
    assert whole.value == pytest.approx(known.difference) and whole.se == pytest.approx(known.se)
    inside = comparison.estimate(beyond=False)
    assert inside.low == inside.high == pytest.approx(whole.value)
    with pytest.raises(ValueError, match="the baseline needs 100 outcomes"):
        Comparison(units, None, a[:-1], seed=0)
