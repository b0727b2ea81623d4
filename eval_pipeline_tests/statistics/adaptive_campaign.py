"""Models of the last third of a matrix as new ones, the earlier ones as history: what sampling by history gains."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np
import pyarrow.parquet as pq

from eval_pipeline.statistics.adaptive import History, Sampler, Units, fit_factors
from eval_pipeline.statistics.adaptive.units import Floats
from eval_pipeline.statistics.intervals import wilson_interval
from eval_pipeline_tests import outside
from eval_pipeline_tests.statistics.many import Many, again, portions
from eval_pipeline_tests.statistics.test_adaptive import answers

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
    table = pq.read_table(outside.given(MATRICES / f"{name}.parquet"))
    columns = [table.column(c).to_numpy().astype(float) for c in table.column_names if c != "item"]
    return np.column_stack(columns)


def draws(new: Sampler, truth: Floats, n: int, seeds: range, batches: int = 8) -> Floats:
    """Error, width, and whether the truth is within the interval (1 or 0), of ``n`` drawn turns, one row a seed."""
    sizes = np.diff(np.round(np.linspace(0, n, batches + 1))).astype(int)
    mean, rows = float(truth.mean()), []
    for some in portions(seeds):
        many = Many([new._engine], some, np.broadcast_to(truth, (len(some), len(truth))))
        for size in sizes:
            many.ask(int(size))
        value, low, high = many.intervals()
        rows.append(np.column_stack([value - mean, high - low, (low <= mean) & (mean <= high)]))
    return np.concatenate(rows)


def conversation_draws(new: Sampler, truth: Floats, n: int, seeds: range, batches: int = 4) -> Floats:
    """As `draws`, of ``n`` conversations."""
    sizes = np.diff(np.round(np.linspace(0, n, batches + 1))).astype(int)
    units, mean, found = new._engine._suite, float(truth.mean()), np.zeros((len(seeds), 3))
    for row, seed in enumerate(seeds):
        sampler = copy.copy(new)
        sampler._engine = again(new._engine, seed)
        for size in sizes:
            batch = sampler.draw(int(size))
            sampler.observe(batch, answers(units, batch, truth))
        e = sampler.estimate()
        found[row] = e.value - mean, e.high - e.low, e.low <= mean <= e.high
    return found


def gain(found: Floats, units: Units, truth: Floats, n: int) -> Gain:
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
    units = Units(tuple(f"{i}" for i in range(turns)), np.ones(turns, dtype=np.int64))
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


def recorded() -> tuple[Units, dict[str, Floats]]:
    """The conversations of the public finqa sample, and what two recorded runs of one model got right."""
    from eval_pipeline_tests.tracks.finqa.shared_sample import cases, scored

    runs = {run: scored(run) for run in ("a", "b")}
    units = Units(tuple(case.id for case in cases()), np.array([len(case.turns) for case in cases()]))
    places = [(case.id, turn.index) for case in cases() for turn in case.turns]
    return units, {
        run: np.array([float(found[place]["numerical_match"]) for place in places]) for run, found in runs.items()
    }
