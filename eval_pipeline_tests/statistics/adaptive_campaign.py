"""What sampling by history gains for the last third of a matrix; how often evaluations that may stop early err."""

import copy
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from eval_pipeline.statistics._special import t_critical
from eval_pipeline.statistics.adaptive import EARLIER, DifferenceSampler, History, Sampler, SuiteUnits, fit_factors
from eval_pipeline.statistics.adaptive.engine import Engine
from eval_pipeline.statistics.adaptive.evidence import BatchEvidence
from eval_pipeline.statistics.adaptive.looks import spending
from eval_pipeline.statistics.adaptive.spread import inclusion_probabilities
from eval_pipeline.statistics.adaptive.units import Floats
from eval_pipeline.statistics.intervals import wilson_interval
from eval_pipeline_tests import outside
from eval_pipeline_tests.statistics.test_adaptive import answers, factors_of

MATRICES = outside.PUBLIC / "matrices"
_Z = 1.959963984540054


@dataclass(frozen=True)
class Gain:
    """Of one new model, over a uniform sample of as many turns.

    Attributes:
        squares: Variance of the uniform sample's mean, by the formula, over the mean squared error found.
        width: Squared width of the uniform sample's interval over that of the intervals found, each mean over repeats.
            The uniform one is estimate ± 1.96 standard errors with the true standard error, which nobody knows.
        honest: The same over Wilson's interval with the correction for a finite population, which can be had.
        covered: Share of intervals with the truth.
        bias: Mean error in standard errors of the uniform sample.
    """

    squares: float
    width: float
    honest: float
    covered: float
    bias: float


def matrix(name: str) -> Floats:
    if name == "math-l5":
        return _answered_matrix(outside.given(outside.PUBLIC / "text/zeroeval_math-l5_half.jsonl"))
    table = pq.read_table(outside.given(MATRICES / f"{name}.parquet"))
    columns = [table.column(c).to_numpy().astype(float) for c in table.column_names if c != "item"]
    return np.column_stack(columns)


def _answered_matrix(file: Path) -> Floats:
    """What models got right: the questions whose last `answer` is the gold, letter by letter."""
    right: dict[str, dict[str, float]] = {}
    for line in file.read_text().splitlines():
        row = json.loads(line)
        told = re.findall(r'"answer"\s*:\s*"?((?:[^"\\\n]|\\.)*?)"?\s*[,}\n]', row["response"])
        same = bool(told) and told[-1].replace("$", "").replace("\\\\", "\\") == str(row["gold"])
        right.setdefault(row["model"], {})[row["id"]] = float(same)
    items = sorted(set.intersection(*(set(found) for found in right.values())))
    return np.array([[right[model][item] for model in sorted(right)] for item in items])


def expected_gain(new: Sampler, truth: Floats, n: int, seed: int, batches: int = 8) -> float:
    """As `Gain.squares`, from one path: of each batch, the variance that its draw has, given all before.

    The error is a sum of martingale differences, so its variance is the mean of these over paths; they differ little
    from path to path. The variance of a systematic draw in random order is Hájek's approximation.
    """
    sampler = again(new, seed)
    engine, found, weights = sampler._engine, 0.0, 0.0
    units = engine._suite
    for size in np.diff(np.round(np.linspace(0, n, batches + 1))).astype(int):
        free, q = engine._chances(int(size))
        each, left = (units.sums(truth)[free] - engine._expected[free]) / q, (1 - q) * q
        variance = float((left * (each - (left * each).sum() / left.sum()) ** 2).sum()) / units.turns**2
        weight = engine._weight(int(size))
        found, weights = found + weight**2 * variance, weights + weight
        batch = sampler.draw(int(size))
        sampler.observe(batch, answers(units, batch, truth))
    number, spread = len(units.ids), float(units.sums(truth - truth.mean()).var(ddof=1))
    return number**2 / n * (1 - n / number) * spread / units.turns**2 * weights**2 / found


def splits(outcomes: Floats, share: float, seeds: range, units: SuiteUnits | None = None, new: int = 6) -> Floats:
    """Gains of a few models, drawn from a random third, with the others as history; one row a split.

    Each is followed by what `known_gain` says of it. Models that are all right or all wrong have no variance to gain on
    and are passed over.
    """
    turns, models = outcomes.shape
    units = units or SuiteUnits(tuple(f"{i}" for i in range(turns)), np.ones(turns, dtype=np.int64))
    n, third, rows = int(len(units.ids) * share), max(1, models // 3), []
    for seed in seeds:
        order = np.random.default_rng([11, seed]).permutation(models)
        later = [m for m in order[:third] if 0.0 < outcomes[:, m].mean() < 1.0][:new]
        sampler = Sampler(units, fit_factors(History(outcomes[:, order[third:]])), seed=0)
        found = [expected_gain(sampler, outcomes[:, m], n, seed, min(8, n // 3)) for m in later]
        found += [math.nan] * (new - len(found)) + [known_gain(sampler, outcomes[:, m], n) for m in later]
        rows.append(found + [math.nan] * (2 * new - len(found)))
    return np.array(rows)


def known_gain(new: Sampler, truth: Floats, n: int) -> float:
    """As `expected_gain`, if the model's coefficients were known beforehand from all its answers, and relied on.

    What is then left to draw is what earlier models do not tell of this one.
    """
    engine = again(new, 0)._engine
    engine._turn_outcomes = truth.copy()
    engine._learn()
    engine._predict()
    units, scores = engine._suite, np.sqrt(engine._variances / engine._suite.sizes)
    q = inclusion_probabilities(scores, n)
    each, left = (units.sums(truth) - engine._expected) / q, (1 - q) * q
    found = float((left * (each - (left * each).sum() / left.sum()) ** 2).sum())
    number, spread = len(units.ids), float(units.sums(truth - truth.mean()).var(ddof=1))
    return number**2 / n * (1 - n / number) * spread / found


def over_matrices(found: Sequence[Floats]) -> tuple[float, float, float]:
    """Geometric mean over matrices of the gain, and its 95% interval (Student's t of the logarithms of few means)."""
    logs = np.array([np.nanmean(np.log(one)) for one in found])
    margin = t_critical(len(logs) - 1) * float(logs.std(ddof=1)) / math.sqrt(len(logs))
    middle = float(logs.mean())
    return math.exp(middle), math.exp(middle - margin), math.exp(middle + margin)


def draws(new: Sampler, truth: Floats, n: int, seeds: range, batches: int = 8) -> Floats:
    """Error, width, and whether the truth is within the interval (1 or 0), of ``n`` drawn units, one row a seed."""
    sizes = np.diff(np.round(np.linspace(0, n, batches + 1))).astype(int)
    units, mean, found = new._engine._suite, float(truth.mean()), []
    for seed in seeds:
        sampler = again(new, seed)
        for size in sizes:
            batch = sampler.draw(int(size))
            sampler.observe(batch, answers(units, batch, truth))
        e = sampler.estimate()
        found.append((e.value - mean, e.high - e.low, e.low <= mean <= e.high))
    return np.array(found, dtype=float)


def gain(found: Floats, units: SuiteUnits, truth: Floats, n: int) -> Gain:
    """Over a uniform sample of ``n`` units, given the rows of `draws`."""
    number, mean = len(units.ids), float(truth.mean())
    spread = float(units.sums(truth - mean).var(ddof=1))
    uniform = number**2 / n * (1 - n / number) * spread / units.turns**2
    # Wilson's interval is made for the number of turns that a population without end would need.
    within = mean * (1 - mean) / uniform
    low, high = wilson_interval(mean, within, _Z)
    return Gain(
        uniform / float((found[:, 0] ** 2).mean()),
        float(4 * _Z**2 * uniform / (found[:, 1] ** 2).mean()),
        float((high - low) ** 2 / (found[:, 1] ** 2).mean()),
        float(found[:, 2].mean()),
        float(found[:, 0].mean() / math.sqrt(uniform)),
    )


def new_models(outcomes: Floats) -> tuple[Sampler, list[Floats]]:
    """A sampler whose history are the earlier models, and the outcomes of each model of the last third."""
    turns, models = outcomes.shape
    earlier = models - models // 3
    units = SuiteUnits(tuple(f"{i}" for i in range(turns)), np.ones(turns, dtype=np.int64))
    sampler = Sampler(units, fit_factors(History(outcomes[:, :earlier])), seed=0)
    return sampler, [outcomes[:, m] for m in range(earlier, models)]


def gains(outcomes: Floats, share: float, repeats: int) -> list[Gain]:
    """Of each model of the last third, with the earlier ones as history."""
    sampler, new = new_models(outcomes)
    n = int(len(outcomes) * share)
    units = sampler._engine._suite
    return [gain(draws(sampler, truth, n, range(repeats)), units, truth, n) for truth in new]


def told(label: str, found: list[Gain]) -> str:
    """One line with the figures that docs/adaptive-statistics.md has."""
    table = np.array([(g.squares, g.width, g.honest, g.covered, g.bias) for g in found])
    least, median = table.min(0), np.median(table, axis=0)
    return (
        f"{label}: squares {median[0]:.2f} (least {least[0]:.2f}), width {median[1]:.2f} ({least[1]:.2f}), "
        f"over Wilson {median[2]:.2f} ({least[2]:.2f}), covered {table[:, 3].mean():.3f} (least {least[3]:.3f}), "
        f"bias at most {np.abs(table[:, 4]).max():.3f}"
    )


def recorded() -> tuple[SuiteUnits, dict[str, Floats]]:
    """The conversations of the public finqa sample, and what two recorded runs of one model got right."""
    from eval_pipeline_tests.tracks.finqa.helpers import cases, scored

    runs = {run: scored(run) for run in ("a", "b")}
    units = SuiteUnits(tuple(case.id for case in cases()), np.array([len(case.turns) for case in cases()]))
    places = [(case.id, turn.index) for case in cases() for turn in case.turns]
    return units, {
        run: np.array([float(found[place]["numerical_match"]) for place in places]) for run, found in runs.items()
    }


SCHEDULE = (0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
"""Shares of the suite that `run --until decided-against` looks after."""


def again(sampler: Sampler, seed: int) -> Sampler:
    """A sampler that has asked nothing, as if made anew with another seed; what the prior expects is not made anew."""
    found, engine = copy.copy(sampler), copy.copy(sampler._engine)
    assert not engine._seen.batches
    engine._seed, engine._seen = seed, BatchEvidence()
    engine._asked, engine._turn_outcomes = engine._asked.copy(), engine._turn_outcomes.copy()
    found._engine = engine
    return found


def stops(units: SuiteUnits, looks: int, seeds: range) -> Floats:
    """Whether the interval at each look misses the truth, one row a seed; half of the suite is asked by the last.

    Four of five evaluations have a history that fits them, the others have none.
    """
    samplers = [Sampler(units, factors_of(units.turns, seed=seed), seed=0) for seed in range(4)]
    without = Sampler(units, None, seed=0)
    found = []
    for seed in seeds:
        truth = _truth(samplers[seed % 4]._engine, seed)
        sampler, wrong = again(samplers[seed % 4] if seed % 5 else without, seed), []
        for look in range(1, looks + 1):
            batch = sampler.draw(len(units.ids) // (2 * looks))
            sampler.observe(batch, answers(units, batch, truth))
            estimate = sampler.estimate(look=look, looks=looks)
            wrong.append(not estimate.low <= truth.mean() <= estimate.high)
        found.append(wrong)
    return np.array(found, dtype=float)


def _truth(engine: Engine, seed: int) -> Floats:
    """Outcomes of a model that the history predicts, with what conversations have in common."""
    rng, units = np.random.default_rng([2, seed]), engine._suite
    odds = engine._design @ (engine._mean + rng.normal(size=len(engine._mean)) * 0.7)
    within = np.repeat(rng.normal(size=len(units.ids)) * 0.8, units.sizes)
    return (rng.random(units.turns) < 1 / (1 + np.exp(-odds - within))).astype(float)


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


def decisions(units: SuiteUnits, difference: float, seeds: range, schedule: Sequence[float] = SCHEDULE) -> Floats:
    """Per comparison without history: 1, -1 or 0 (undecided), and the share of the suite asked; one row a seed."""
    ends, rows = [round(share * len(units.ids)) for share in schedule], []
    for seed in seeds:
        a, b = two_models(np.random.default_rng([5, seed]), units.turns, difference)
        rows.append(decided(DifferenceSampler(units, None, a, seed=seed), b, ends))
    return np.array(rows)


def decided(comparison: DifferenceSampler, b: Floats, ends: Sequence[int]) -> tuple[float, float]:
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


def clustered(cases: int, of_cluster: int) -> SuiteUnits:
    """A suite of conversations of one to three turns, of which so many are of one cluster."""
    names = tuple(f"case {place}" for place in range(cases))
    sizes = np.array([1 + place % 3 for place in range(cases)])
    return SuiteUnits(names, sizes, tuple(f"cluster {place // of_cluster}" for place in range(cases)))


def clustered_decisions(units: SuiteUnits, ability: float, seeds: range, *, known: bool = True) -> Floats:
    """As `decisions`, of two models of which each is better at some clusters; B is better by ``ability`` log odds.

    Suites are samples of clusters, so with an ability of 0 the two are equal, though not on this very suite. Unless
    clusters are ``known``, each case is taken for independent.
    """
    factors, ends = factors_of(units.turns, settings=EARLIER), [round(share * len(units.ids)) for share in SCHEDULE]
    cluster, told = np.repeat(units.codes, units.sizes), units if known else replace(units, clusters=())
    found = np.zeros((len(seeds), 2))
    for row, seed in enumerate(seeds):
        rng = np.random.default_rng([7, seed])
        own = rng.normal(0.0, 2.0, (2, cluster.max() + 1))[:, cluster]
        odds = factors.design @ factors.mean + own + np.array([[0.0], [ability]])
        a, b = (rng.random(odds.shape) < 1 / (1 + np.exp(-odds))).astype(float)
        found[row] = decided(DifferenceSampler(told, factors if seed % 2 else None, a, seed=seed), b, ends)
    return found
