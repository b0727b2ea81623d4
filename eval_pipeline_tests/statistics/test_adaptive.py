"""Sampling by history: exact unbiasedness, fixed sizes, replay, whole conversations, bad input."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.statistics.adaptive import (
    DrawSettings,
    Factors,
    History,
    Sampler,
    SuiteUnits,
    UnitBatch,
    expected_turns,
    fit_factors,
)
from eval_pipeline.statistics.adaptive.spread import inclusion_probabilities, systematic
from eval_pipeline.statistics.adaptive.units import Floats


def factors_of(
    turns: int, evaluations: int = 12, seed: int = 0, gaps: float = 0.0, settings: DrawSettings | None = None
) -> Factors | None:
    rng = np.random.default_rng(seed)
    odds = rng.normal(0.5, 1, evaluations) + rng.normal(0, 1.5, turns)[:, None]
    table = (rng.random(odds.shape) < 1 / (1 + np.exp(-odds))).astype(float)
    table[rng.random(odds.shape) < gaps] = np.nan
    return fit_factors(History(table), settings)


def suite(sizes: Sequence[int]) -> SuiteUnits:
    return SuiteUnits(tuple(f"case {i}" for i in range(len(sizes))), np.array(sizes))


def answers(units: SuiteUnits, batch: UnitBatch, truth: Floats) -> list[Floats]:
    return [truth[units.starts[u] : units.starts[u] + units.sizes[u]] for u in batch.units]


@pytest.mark.parametrize("sizes", [[1, 1, 1, 1, 1], [2, 1, 3, 1]])
def test_the_estimate_is_exactly_unbiased_over_all_draws(sizes: list[int]) -> None:
    """Three batches of one unit: every path there is, weighted with its probability, gives the share itself."""
    units = suite(sizes)
    factors = factors_of(units.turns, gaps=0.2)
    truth = np.random.default_rng(3).integers(0, 2, units.turns).astype(float)
    truth[0], truth[-1] = 1.0, 0.0
    mean = total = 0.0
    values = set()
    for path in itertools.permutations(range(len(sizes)), 3):
        sampler, chance = Sampler(units, factors, seed=1), 1.0
        for unit in path:
            _, chances = sampler._engine._chances(1)
            free = np.flatnonzero(~sampler._engine._asked)
            q = chances[np.searchsorted(free, unit)]
            batch = UnitBatch(np.array([unit]), np.array([q]))
            sampler.observe(batch, answers(units, batch, truth))
            chance *= q
        value = sampler.estimate().value
        mean, total = mean + chance * value, total + chance
        values.add(round(value, 9))
    assert total == pytest.approx(1.0, abs=1e-12)
    assert mean == pytest.approx(truth.mean(), abs=1e-12)
    assert len(values) > 3, "the draws must matter"


@given(st.lists(st.floats(0.01, 100.0), min_size=1, max_size=40), st.data())
def test_probabilities_sum_to_the_number_drawn(scores: list[float], data: st.DataObject) -> None:
    n = data.draw(st.integers(0, len(scores)))
    chances = inclusion_probabilities(np.array(scores), n)
    assert chances.sum() == pytest.approx(n, abs=1e-9)
    assert ((chances <= 1.0) & (chances >= 0.0)).all() and (n == 0 or (chances > 0.0).all())
    order = np.array(data.draw(st.permutations(range(len(scores)))), dtype=np.int64)
    drawn = systematic(chances, order, data.draw(st.floats(0.0, 0.999999)))
    assert len(drawn) == n == len(set(drawn.tolist()))
    assert set(np.flatnonzero(chances >= 1.0 - 1e-12)) <= set(drawn.tolist())


@pytest.mark.parametrize(
    ("scores", "n", "order", "start"),
    [
        ([15.39, 0.27, 2.03, 6.1, 1.22, 0.24, 0.17], 3, [1, 0, 4, 2, 3, 6, 5], 0.06870229007633587),
        ([0.43, 0.11, 32.43, 0.38, 1.94], 4, [1, 3, 4, 0, 2], 0.06521739130434766),
        ([3.56, 0.02, 1.12, 3.94, 7.46, 0.3, 38.26, 0.08, 0.28, 6.5, 1.11], 10, [3, 7, 4, 8, 0, 5, 6, 10, 9, 1, 2],
         0.7999999999999997),
    ],
)  # fmt: skip
def test_rounding_neither_misses_a_certain_unit_nor_draws_one_twice(
    scores: list[float], n: int, order: list[int], start: float
) -> None:
    """Starts that fall on a cumulated sum, where a step may land on either side of a certain unit's ends."""
    chances = inclusion_probabilities(np.array(scores), n)
    for near in (np.nextafter(start, 0.0), start, np.nextafter(start, 1.0)):
        drawn = systematic(chances, np.array(order), float(near)).tolist()
        assert len(drawn) == n == len(set(drawn))
        assert set(np.flatnonzero(chances == 1.0)) <= set(drawn)


@pytest.mark.parametrize("share", [1.0 - 1e-10, 1.0 - 1e-16])
def test_a_nearly_certain_unit_is_certain(share: float) -> None:
    chances = inclusion_probabilities(np.array([share, share, 0.5, 0.5, 2.0 - 2.0 * share + 1e-17]), 3)
    assert chances[:2].tolist() == [1.0, 1.0] and chances.sum() == pytest.approx(3.0, abs=1e-12)


def test_each_unit_is_drawn_with_exactly_its_probability() -> None:
    """All orders, and the uniform start integrated exactly between the points where the drawn units change."""
    chances = inclusion_probabilities(np.array([5.0, 1.0, 1.3, 0.4]), 2)
    found, orders = np.zeros(4), list(itertools.permutations(range(4)))
    for order in orders:
        steps = np.unique(np.r_[0.0, np.mod(np.cumsum(chances[list(order)]), 1.0), 1.0])
        for low, high in itertools.pairwise(steps):
            found[systematic(chances, np.array(order), (low + high) / 2)] += (high - low) / len(orders)
    assert found == pytest.approx(chances, abs=1e-12)


def run(
    units: SuiteUnits, factors: Factors | None, truth: Floats, sizes: Sequence[int], seed: int
) -> tuple[Sampler, list[UnitBatch]]:
    sampler, batches = Sampler(units, factors, seed=seed), []
    for n in sizes:
        batches.append(sampler.draw(n))
        sampler.observe(batches[-1], answers(units, batches[-1], truth))
    return sampler, batches


@pytest.mark.parametrize("history", [True, False])
def test_conversations_are_asked_whole_and_a_sampler_made_anew_goes_on_alike(history: bool) -> None:
    units = suite([1, 4, 2, 3, 1, 5, 2, 2, 1, 3] * 6)
    factors = factors_of(units.turns, gaps=0.5) if history else None
    truth = np.random.default_rng(5).integers(0, 2, units.turns).astype(float)
    first, batches = run(units, factors, truth, [5, 10, 7], seed=9)
    again = Sampler(units, factors, seed=9)
    for batch in batches:
        again.observe(batch, answers(units, batch, truth))
    assert again.estimate() == first.estimate()
    assert again.draw(8).units.tolist() == first.draw(8).units.tolist() == first.draw(8).units.tolist()
    drawn = np.concatenate([b.units for b in batches])
    assert len(set(drawn.tolist())) == 22 == first.estimate().units
    assert first.estimate().turns == units.sizes[drawn].sum()
    other, others = run(units, factors, truth, [5, 10, 7], seed=10)
    assert [b.units.tolist() for b in others] != [b.units.tolist() for b in batches]
    while other.left:
        batch = other.draw(20)
        other.observe(batch, answers(units, batch, truth))
    whole = other.estimate()
    assert whole.low == whole.value == whole.high == truth.mean() and whole.effective == whole.turns == units.turns


def test_bad_input_is_told_in_a_sentence() -> None:
    units = suite([1, 2, 1])
    sampler = Sampler(units, None, seed=0)
    with pytest.raises(ValueError, match="nothing is observed yet"):
        sampler.estimate()
    batch = sampler.draw(2)
    right = answers(units, batch, np.ones(4))
    with pytest.raises(ValueError, match=r"needs [12] outcomes of 0 or 1"):
        sampler.observe(batch, [np.array([0.5])] * 2)
    with pytest.raises(ValueError, match="other probabilities"):
        sampler.observe(UnitBatch(batch.units, batch.probabilities * 0.9), right)
    sampler.observe(batch, right)
    with pytest.raises(ValueError, match="asked already"):
        sampler.observe(batch, right)
    with pytest.raises(ValueError, match="look must be"):
        sampler.estimate(look=3, looks=2)
    with pytest.raises(ValueError, match="of 7 turns, the suite has 4"):
        Sampler(units, factors_of(7), seed=0)
    assert fit_factors(History(np.full((4, 2), np.nan))) is None


def test_a_plan_asks_for_more_the_narrower_it_is_to_be() -> None:
    units, factors = suite([1] * 400), factors_of(400)
    wanted = [expected_turns(units, factors, h) for h in (0.1, 0.05, 0.02, 0.001)]
    assert wanted == sorted(wanted) and wanted[0] < 100 and wanted[-1] > 390
    assert expected_turns(units, factors, 0.05) < expected_turns(units, None, 0.05)
