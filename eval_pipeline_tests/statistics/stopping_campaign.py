"""Simulated evaluations that may stop at each look, and simulated comparisons: how often they err, what they find."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from eval_pipeline.statistics.adaptive import Comparison, Sampler, Units
from eval_pipeline.statistics.adaptive.engine import Engine
from eval_pipeline.statistics.adaptive.looks import spending
from eval_pipeline.statistics.adaptive.units import Floats
from eval_pipeline_tests.statistics.many import AT_ONCE, Many, again, comparisons, portions
from eval_pipeline_tests.statistics.test_adaptive import answers, factors_of

SCHEDULE = (0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
"""Shares of the suite that `run --until decided-against` looks after."""


def stops(units: Units, looks: int, seeds: range) -> Floats:
    """Whether the interval at each look misses the truth, one row a seed; a tenth of the suite is asked before each.

    Four of five evaluations have a history that fits them, the others have none.
    """
    samplers = [Sampler(units, factors_of(units.turns, seed=seed), seed=0) for seed in range(4)]
    samplers.append(Sampler(units, None, seed=0))
    wrong = np.zeros((len(seeds), looks))
    single = bool((units.sizes == 1).all())
    for kind, sampler in enumerate(samplers):
        mine = [seed for seed in seeds if (seed % 4 if seed % 5 else 4) == kind]
        for first in range(0, len(mine), AT_ONCE if single else 1):
            some = mine[first : first + AT_ONCE] if single else [mine[first]]
            truth = np.array([_truth(samplers[seed % 4]._engine, seed) for seed in some])
            rows = [seeds.index(seed) for seed in some]
            wrong[rows] = _several(sampler, some, truth, looks) if single else _one(sampler, some[0], truth[0], looks)
    return wrong


def _truth(engine: Engine, seed: int) -> Floats:
    """Outcomes of a model that the history predicts, with what conversations have in common."""
    rng, units = np.random.default_rng([2, seed]), engine._suite
    odds = engine._design @ (engine._mean + rng.normal(size=len(engine._mean)) * 0.7)
    within = np.repeat(rng.normal(size=len(units.ids)) * 0.8, units.sizes)
    return (rng.random(units.turns) < 1 / (1 + np.exp(-odds - within))).astype(float)


def _several(sampler: Sampler, seeds: Sequence[int], truth: Floats, looks: int) -> Floats:
    many, wrong = Many([sampler._engine], seeds, truth), np.zeros((len(seeds), looks))
    for look in range(looks):
        many.ask(truth.shape[1] // (2 * looks))
        wrong[:, look] = many.wrong(looks)
    return wrong


def _one(template: Sampler, seed: int, truth: Floats, looks: int) -> list[bool]:
    sampler, wrong = copy.copy(template), []
    sampler._engine = again(template._engine, seed)
    units = sampler._engine._suite
    for look in range(1, looks + 1):
        batch = sampler.draw(len(units.ids) // (2 * looks))
        sampler.observe(batch, answers(units, batch, truth))
        estimate = sampler.estimate(look=look, looks=looks)
        wrong.append(not estimate.low <= truth.mean() <= estimate.high)
    return wrong


def two_models(rng: np.random.Generator, turns: int, difference: float, rate: float = 0.8) -> tuple[Floats, Floats]:
    """Outcomes of A and B that correlate by 0.9; B is better by ``difference``."""
    changed = 2 * rate * (1 - rate) * 0.1
    broken, fixed = (changed - difference) / 2, (changed + difference) / 2
    u = rng.random(turns)
    b = (u < rate - broken) | ((u >= rate) & (u < rate + fixed))
    return (u < rate).astype(float), b.astype(float)


def effect(turns: int, rate: float = 0.8) -> float:
    """The difference that a comparison of all turns finds with power 0.95."""
    changed, found = 2 * rate * (1 - rate) * 0.1, 0.0
    for _ in range(50):
        found = float((1.959964 + 1.644854) * np.sqrt((changed - found**2) / turns))
    return found


def decisions(units: Units, difference: float, seeds: range, schedule: Sequence[float] = SCHEDULE) -> Floats:
    """Per comparison without history: 1, -1 or 0 (undecided), and the share of the suite asked; one row a seed.

    Of suites of single turns.
    """
    ends, rows = [round(share * len(units.ids)) for share in schedule], []
    for some in portions(seeds):
        two = [two_models(np.random.default_rng([5, seed]), units.turns, difference) for seed in some]
        a, b = (np.array(outcomes) for outcomes in zip(*two, strict=True))
        many = Many(comparisons(Comparison(units, None, a[0], seed=0)._engine, a), some, b)
        said, asked = np.zeros(len(some)), np.full(len(some), schedule[-1])
        for end in ends:
            many.ask(end - many.asked)
            found = many.verdicts(len(ends), spending(ends))
            new = (said == 0.0) & (found != 0.0)
            said[new], asked[new] = found[new], end / len(units.ids)
        rows.append(np.column_stack([said, asked]))
    return np.concatenate(rows)


def decided(comparison: Comparison, b: Floats, ends: Sequence[int]) -> tuple[float, float]:
    """Asks until B is decided against A: 1, -1 or 0 (undecided), and the share of turns asked."""
    units, asked = comparison._engine._suite, 0
    for look, end in enumerate(ends, start=1):
        batch = comparison.draw(end - asked)
        comparison.observe(batch, answers(units, batch, b))
        asked = end
        estimate = comparison.estimate(look=look, looks=len(ends), spent=spending(ends))
        if estimate.low > 0.0 or estimate.high < 0.0:
            return float(np.sign(estimate.value)), estimate.turns / units.turns
    return 0.0, estimate.turns / units.turns


def clustered(cases: int, of_cluster: int) -> Units:
    """A suite of conversations of one to three turns, of which so many are of one cluster."""
    names = tuple(f"case {place}" for place in range(cases))
    sizes = np.array([1 + place % 3 for place in range(cases)])
    return Units(names, sizes, tuple(f"cluster {place // of_cluster}" for place in range(cases)))


def clustered_decisions(units: Units, ability: float, seeds: range, *, known: bool = True) -> Floats:
    """As `decisions`, of two models of which each is better at some clusters; B is better by ``ability`` log odds.

    Suites are samples of clusters, so with an ability of 0 the two are equal, though not on this very suite. Unless
    clusters are ``known``, each case is taken for independent.
    """
    factors, ends = factors_of(units.turns), [round(share * len(units.ids)) for share in SCHEDULE]
    assert factors is not None
    cluster, told = np.repeat(units.codes, units.sizes), units if known else replace(units, clusters=())
    found = np.zeros((len(seeds), 2))
    for row, seed in enumerate(seeds):
        rng = np.random.default_rng([7, seed])
        own = rng.normal(0.0, 2.0, (2, cluster.max() + 1))[:, cluster]
        odds = factors.design @ factors.mean + own + np.array([[0.0], [ability]])
        a, b = (rng.random(odds.shape) < 1 / (1 + np.exp(-odds))).astype(float)
        found[row] = decided(Comparison(told, factors if seed % 2 else None, a, seed=seed), b, ends)
    return found
