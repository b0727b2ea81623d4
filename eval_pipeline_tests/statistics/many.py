"""Many repeats of a draw at once, for campaigns: the same numbers as `Engine`, of suites of single turns.

Arrays have a row a repeat. A test compares it with the engine, draw by draw.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence

import numpy as np

from eval_pipeline.statistics.adaptive.draws import inclusion_probabilities, systematic
from eval_pipeline.statistics.adaptive.engine import _NOISE, _SURE, _UNIFORM, Engine
from eval_pipeline.statistics.adaptive.evidence import EXPECTED, Evidence
from eval_pipeline.statistics.adaptive.factors import expit
from eval_pipeline.statistics.adaptive.looks import critical, student
from eval_pipeline.statistics.adaptive.units import Floats

AT_ONCE = 50
_NORMAL = 1.959963984540054


class Many:
    """Repeats with the same suite and prior; they differ in seed, truth and, of comparisons, the known outcomes."""

    def __init__(self, engines: Sequence[Engine], seeds: Sequence[int], truth: Floats) -> None:
        """Takes engines that have asked nothing, one for all or one for each seed; truth of shape (seeds, turns)."""
        first, shape = engines[0], (len(seeds), len(engines[0]._asked))
        assert (first._suite.sizes == 1).all() and not first._uniform
        self._engines, self._seeds, self._y = engines, seeds, truth
        self._x = np.broadcast_to(np.stack([e._design for e in engines]), (*shape, len(first._mean)))
        self._known = np.broadcast_to(np.stack([e._known for e in engines]), shape)
        self._mean, self._precision = first._mean, first._precision
        self._theta = np.tile(first._mean, (shape[0], 1))
        self._covariance = np.tile(first._covariance, (shape[0], 1, 1))
        self._asked = np.zeros(shape, dtype=bool)
        self.asked, self._seen = 0, list[Floats]()
        self._predict()

    def ask(self, n: int) -> None:
        """Draws and observes n turns of each repeat."""
        turns = self._y.shape[1]
        q, drawn = np.ones_like(self._y), np.zeros_like(self._asked)
        uniform = np.clip(1.0 - 1.0 / self.dispersion(), _UNIFORM, 1.0) if self._seen else np.full(len(q), _UNIFORM)
        for row, seed in enumerate(self._seeds):
            free = np.flatnonzero(~self._asked[row])
            scores = np.sqrt(self._variance[row, free])
            chances = inclusion_probabilities((1.0 - uniform[row]) * scores / scores.mean() + uniform[row], n)
            rng = np.random.default_rng([seed, len(self._seen)])
            q[row, free] = chances
            drawn[row, free[systematic(chances, rng.permutation(len(free)), float(rng.random()))]] = True
        residual, free = self._y - self._p, ~self._asked
        value = np.where(self._asked, self._y, self._p).sum(1) + np.where(drawn, residual / q, 0.0).sum(1)
        left = (1.0 - q) / q
        lost = np.where(drawn, left / q, 0.0) / turns**2
        noise = np.where(free, left**2 / q * self._noise, 0.0).sum(1) / turns**4
        weights = [1.0 if n == turns - self.asked else 1.0 / e.anticipated(self.asked, n) for e in self._engines]
        self._seen.append(
            np.stack(
                [np.broadcast_to(np.array(weights), (len(q),)), value / turns,
                 np.where(free, left * self._variance, 0.0).sum(1) / turns**2, noise,
                 (lost * residual**2).sum(1), (lost * self._variance).sum(1)]
            )
        )  # fmt: skip
        self._asked |= drawn
        self.asked += n
        self._learn()
        self._predict()

    def result(self) -> tuple[Floats, Floats]:
        """Estimates and their variances."""
        if self.asked == self._y.shape[1]:
            return self._y.mean(1), np.zeros(len(self._y))
        weight, value, variance = np.stack(self._seen, axis=1)[:3]
        weight = weight / weight.sum(0)
        return (weight * value).sum(0), (weight**2 * variance).sum(0) * self.dispersion()

    def dispersion(self) -> Floats:
        weight, _, _, _, observed, expected = np.stack(self._seen, axis=1)
        seen, thought = (weight**2 * observed).sum(0), (weight**2 * expected).sum(0)
        share = EXPECTED * thought / self.asked
        return np.where(thought > 0.0, (seen + share) / np.where(thought > 0.0, thought + share, 1.0), 1.0)

    def freedom(self) -> Floats:
        weight, _, variance, noise = np.stack(self._seen, axis=1)[:4]
        done, doubt = (weight**2 * variance).sum(0), (weight**4 * noise).sum(0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return EXPECTED + np.where(doubt > 0.0, np.minimum(2.0 * done**2 / doubt, self.asked), self.asked)

    def intervals(self) -> tuple[Floats, Floats, Floats]:
        """Estimate, low and high of the share, by one look."""
        value, variance = self.result()
        margin = student_each(_NORMAL, self.freedom()) * np.sqrt(variance)
        right = np.where(self._asked, self._y, 0.0).sum(1)
        turns = self._y.shape[1]
        floor, ceiling = right / turns, (right + turns - self.asked) / turns
        inside = np.clip(value, floor, ceiling)
        low, high = np.maximum(value - margin, floor), np.minimum(value + margin, ceiling)
        return value, np.minimum(low, inside), np.maximum(high, inside)

    def wrong(self, looks: int) -> Floats:
        """Whether the interval at this look misses the truth; the boundary is computed where it may."""
        value, variance = self.result()
        truth, freedom = self._y.mean(1), self.freedom()
        weight, _, done = np.stack(self._seen, axis=1)[:3]
        information = np.cumsum(weight**2 * done, axis=0)
        missed = np.zeros(len(truth))
        # What is answered already bounds the interval, but never excludes the truth.
        for row in np.flatnonzero(np.abs(value - truth) > _NORMAL * np.sqrt(variance)):
            z = critical(0.95, len(self._seen), looks, information[:, row])
            missed[row] = abs(value[row] - truth[row]) > student(z, float(freedom[row])) * math.sqrt(variance[row])
        return missed

    def verdicts(self, looks: int, spent: Sequence[float]) -> Floats:
        """1, -1 or 0 of each comparison at this look; the boundary is computed where it may be crossed."""
        value, variance = self.result()
        spread, of_spread = self._spread()
        difference, total = value - self._known.mean(1), variance + spread
        of_draw = np.where(variance > 0.0, self.freedom(), np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            freedom = total**2 / (variance**2 / of_draw + spread**2 / of_spread)
        weight, _, done = np.stack(self._seen, axis=1)[:3]
        done = np.cumsum(weight**2 * done, axis=0) / np.cumsum(weight, axis=0) ** 2
        if self.asked == self._y.shape[1]:
            done[-1] = 0.0
        said = np.zeros(len(value))
        for row in np.flatnonzero(np.abs(difference) > _NORMAL * np.sqrt(total)):
            precisions = np.maximum.accumulate(1.0 / (done[:, row] * self.dispersion()[row] + spread[row]))
            z = critical(0.95, len(self._seen), looks, precisions, spent)
            if abs(difference[row]) > student(z, float(freedom[row])) * math.sqrt(total[row]):
                said[row] = np.sign(difference[row])
        return said

    def _spread(self) -> tuple[Floats, Floats]:
        turns = self._y.shape[1]
        found = np.where(self._asked, self._y, self._p) - self._known
        squares = (found - found.mean(1)[:, None]) ** 2
        unasked = np.where(self._asked, 0.0, self._variance).sum(1) * self.dispersion()
        spread = turns / (turns - 1) * (squares.sum(1) + unasked) / turns**2
        mine = np.where(self._asked, squares, 0.0)
        total, noise = mine.sum(1), (mine**2).sum(1) - mine.sum(1) ** 2 / self.asked
        with np.errstate(divide="ignore"):
            freedom = np.where(noise > 1e-12, np.minimum(2.0 * total**2 / noise, self.asked - 1), self.asked - 1)
        return spread, np.maximum(freedom, 1.0)

    def _predict(self) -> None:
        spread = ((self._x @ self._covariance) * self._x).sum(2) + _NOISE
        odds = (self._x @ self._theta[:, :, None])[:, :, 0]
        self._p = np.clip(expit(odds / np.sqrt(1.0 + np.pi / 8.0 * spread)), _SURE, 1.0 - _SURE)
        self._variance = self._p * (1.0 - self._p)
        self._noise = self._variance * (1.0 - 6.0 * self._variance) + 2.0 * self._variance**2

    def _learn(self) -> None:
        rows = np.arange(len(self._y))
        for _ in range(8):
            x = self._x[rows]
            p = expit((x @ self._theta[rows][:, :, None])[:, :, 0])
            here = self._asked[rows]
            pull = (np.where(here, self._y[rows] - p, 0.0)[:, None, :] @ x)[:, 0]
            gradient = pull - (self._theta[rows] - self._mean) @ self._precision
            bent = x * np.where(here, p * (1.0 - p), 0.0)[:, :, None]
            hessian = bent.transpose(0, 2, 1) @ x + self._precision
            step = np.clip(np.linalg.solve(hessian, gradient[..., None])[..., 0], -1.0, 1.0)
            self._theta[rows] += step
            self._covariance[rows] = np.linalg.inv(hessian)
            rows = rows[np.abs(step).max(1) >= 1e-4]
            if not len(rows):
                break


def again(engine: Engine, seed: int) -> Engine:
    """An engine that has asked nothing, as if made anew with another seed; what the prior expects is not made anew."""
    assert not engine._seen.batches
    found = copy.copy(engine)
    found._seed, found._seen = seed, Evidence()
    found._asked, found._turn_outcomes = engine._asked.copy(), engine._turn_outcomes.copy()
    return found


def portions(seeds: range) -> Iterator[range]:
    """Yields so many seeds at a time that the arrays fit into the processor's cache."""
    for first in range(0, len(seeds), AT_ONCE):
        yield seeds[first : first + AT_ONCE]


def student_each(z: float, freedom: Floats) -> Floats:
    return np.array([student(z, float(f)) for f in freedom])


def comparisons(model: Engine, known: Floats) -> list[Engine]:
    """Engines of comparisons without history with these known outcomes, shape (repeats, turns).

    ``model`` is the engine of any such comparison. Only two kinds of turns differ: those that A has right and wrong.
    """
    example = {side: int(np.flatnonzero(model._known == side)[0]) for side in (0.0, 1.0)}
    found = []
    for row in known:
        engine = copy.copy(model)
        places = np.where(row == 1.0, example[1.0], example[0.0])
        engine._known, engine._design = row, model._design[places]
        engine._average, engine._average_square = model._average[places], model._average_square[places]
        engine._information = (engine._design * engine._average[:, None]).T @ engine._design
        found.append(engine)
    return found
