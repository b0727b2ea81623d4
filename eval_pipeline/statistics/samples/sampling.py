"""Estimates for a population from a stratified random sample of it, with design-based 95% intervals.

Of the N_h members of stratum h, n_h were drawn at random without replacement and rated; each represents N_h / n_h
members. T = sum_h (N_h / n_h) sum_i x_hi is the Horvitz-Thompson estimate of the population's totals (Horvitz and
Thompson 1952, "A Generalization of Sampling Without Replacement From a Finite Universe"). A figure is a function of T:
a share T_1 / N, a ratio T_1 / T_2 (Hajek 1971), or Cohen's kappa of a table of totals. Only the draw is random; the
population is fixed, so conversations need not be treated as clusters. The variance is the jackknife over strata (Wolter
2007, "Introduction to Variance Estimation", 4.5),

    v = sum_h (1 - n_h / N_h) (n_h - 1) / n_h sum_i (f_(hi) - mean_i f_(hi))^2,

where f_(hi) is the figure without member i, with the rest of its stratum weighted up. For a share this is the textbook
formula sum_h (N_h / N)^2 (1 - n_h / N_h) s_h^2 / n_h (Cochran 1977, "Sampling Techniques", 5.6).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eval_pipeline.statistics._special import t_critical
from eval_pipeline.statistics.intervals import wilson_interval
from eval_pipeline.statistics.raters.agreement import NO_VARIETY, kappa_of_table

NOTHING_DRAWN: Final = "nothing to go by was drawn"
UNSEEN_STRATUM: Final = "of one kind nothing is looked at yet"
LONE_MEMBER: Final = "only one is looked at"
NO_SPREAD: Final = "what was looked at is all alike, which shows nothing of its error"
ONE_WORD: Final = "one of the two says the same of everything"
_UNSTABLE: Final = "without one of them there is no figure"

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Strata:
    """The strata of a sample.

    Attributes:
        codes: Shape (n,), the stratum of each rated member, from 0.
        sizes: Shape (H,), number of members of each stratum; at least 1.
    """

    codes: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @property
    def seen(self) -> NDArray[np.int64]:
        """Number of rated members in each stratum."""
        return np.bincount(self.codes, minlength=len(self.sizes)).astype(np.int64)

    @property
    def weights(self) -> Floats:
        """Number of members of the population that each rated member represents."""
        found: Floats = (self.sizes / np.maximum(self.seen, 1))[self.codes]
        return found


@dataclass(frozen=True, slots=True)
class DrawnEstimate:
    """A figure of a population, estimated from a sample.

    Attributes:
        n: Number of sample members that the figure is based on.
        population: Estimated number of members of the population that they represent.
        value: The figure; None if it is undefined.
        se: Its design-based standard error; None if ``low`` is.
        low: Lower end of the 95% interval; None if ``reason`` is given.
        high: Upper end of the 95% interval; None if ``low`` is.
        reason: Why numbers are missing; None if none is.
    """

    n: int
    population: float | None
    value: float | None
    se: float | None
    low: float | None
    high: float | None
    reason: str | None


def drawn_rate(values: ArrayLike, domain: ArrayLike, strata: Strata) -> DrawnEstimate:
    """Estimates the share of a population (or of a domain within it) that has some property.

    The estimate is the ratio of two Horvitz-Thompson totals, since the size of a domain is estimated too; over all
    members it is the Horvitz-Thompson mean. The interval is Wilson's with p(1 - p) / v instead of n, and t with n - H
    degrees of freedom instead of z (Korn and Graubard 1998, Survey Methodology 24). Strata whose m rated members are
    all alike show no variance. They get the variance of a sample with two more members of which one differs (Laplace's
    rule), so that a few equal members do not look like certainty.

    Args:
        values: Shape (n,), 1 if the member has the property, else 0.
        domain: Shape (n,), whether the member belongs to the domain.
        strata: The strata of the sample.
    """
    inside = np.asarray(domain, dtype=bool)
    return drawn_share(np.asarray(values, dtype=np.float64) * inside, inside, strata)


def drawn_share(ones: ArrayLike, sizes: ArrayLike, strata: Strata) -> DrawnEstimate:
    """Estimates, as `drawn_rate`, a share of units of which a member may have several or none.

    Args:
        ones: Shape (n,), how many of the member's units have the property.
        sizes: Shape (n,), how many units the member has, such as the turns of a conversation.
        strata: The strata of the sample.
    """
    ones, inside = np.asarray(ones, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    n, population = int((inside > 0).sum()), float((strata.weights * inside).sum())
    if missing := missing_reason(n, strata):
        return DrawnEstimate(n, None, None, None, None, None, missing)
    found = _estimate(np.column_stack([ones, inside]), strata, lambda t: t[0] / t[1] if t[1] > 0 else None)
    assert found.value is not None
    if found.variance is None:
        return DrawnEstimate(n, population, found.value, None, None, None, found.reason)
    variance = found.variance + variance_of_those_alike(ones, inside, strata)
    rate = min(max(found.value, 0.0), 1.0)
    if variance <= 0.0:  # every member was rated
        return DrawnEstimate(n, population, rate, 0.0, rate, rate, None)
    least = 1.0 / (n + 2.0)
    spread = min(max(rate, least), 1.0 - least)
    low, high = wilson_interval(rate, max(spread * (1.0 - spread) / variance, 1.0), t_critical(found.freedom))
    return DrawnEstimate(n, population, rate, math.sqrt(variance), low, high, None)


def drawn_kappa(first: ArrayLike, second: ArrayLike, domain: ArrayLike, strata: Strata) -> DrawnEstimate:
    """Estimates Cohen's kappa of two raters over a population from the estimated table of their ratings.

    Args:
        first: Shape (n,), the first rater's rating of each member, as integers from 0.
        second: Shape (n,), the second rater's ratings, with the same codes.
        domain: Shape (n,), whether both rated the member.
        strata: The strata of the sample.
    """
    inside = np.asarray(domain, dtype=bool)
    one, other = (np.where(inside, np.asarray(side), 0).astype(np.int64) for side in (first, second))
    n = int(inside.sum())
    if missing := missing_reason(n, strata):
        return DrawnEstimate(n, None, None, None, None, None, missing)
    size = int(max(one.max(), other.max())) + 1
    cells = np.zeros((len(one), size * size))
    cells[np.arange(len(one)), one * size + other] = inside
    found = _estimate(cells, strata, lambda totals: kappa_of_table(totals.reshape(size, size)))
    population = float(strata.weights[inside].sum())
    if found.value is None:
        return DrawnEstimate(n, population, None, None, None, None, NO_VARIETY)
    if len(set(one[inside].tolist())) < 2 or len(set(other[inside].tolist())) < 2:
        return DrawnEstimate(n, population, found.value, None, None, None, ONE_WORD)
    if found.variance is None:
        return DrawnEstimate(n, population, found.value, None, None, None, found.reason)
    if not found.variance and (strata.seen < strata.sizes).any():
        return DrawnEstimate(n, population, found.value, None, None, None, NO_SPREAD)
    se = math.sqrt(found.variance)
    margin = t_critical(found.freedom) * se
    return DrawnEstimate(
        n, population, found.value, se, max(found.value - margin, -1.0), min(found.value + margin, 1.0), None
    )


@dataclass(frozen=True, slots=True)
class _Found:
    value: float | None
    variance: float | None
    freedom: int
    reason: str | None


def _estimate(x: Floats, strata: Strata, figure: Callable[[Floats], float | None]) -> _Found:
    """Computes a function of the column totals of ``x``, and its variance by the jackknife over strata."""
    weighted = x * strata.weights[:, None]
    totals = weighted.sum(axis=0)
    value = figure(totals)
    if value is None:
        return _Found(None, None, 0, None)
    variance, freedom = 0.0, 0
    for members, share in sampled_groups(strata):
        count = int(members.sum())
        if count < 2:
            return _Found(value, None, 0, LONE_MEMBER)
        kinds, inverse = np.unique(weighted[members], axis=0, return_inverse=True)
        own = weighted[members].sum(axis=0)
        without = [figure(totals - own + (own - kind) * (count / (count - 1))) for kind in kinds]
        if any(one is None for one in without):
            return _Found(value, None, 0, _UNSTABLE)
        each = np.array(without, dtype=np.float64)[inverse.ravel()]
        variance += (1 - share) * (count - 1) / count * float(((each - each.mean()) ** 2).sum())
        freedom += count - 1
    return _Found(value, variance, max(freedom, 1), None)


def sampled_groups(strata: Strata) -> list[tuple[NDArray[np.bool_], float]]:
    """Groups the members by stratum and returns each group with its sampled share; fully sampled strata are left out.

    A stratum with one rated member shows no variance. It is merged with the largest other one, which makes the variance
    too large rather than too small (collapsed strata; Wolter 2007, 2.5).
    """
    seen, sizes = strata.seen, strata.sizes
    open_ones = sorted((int(h) for h in np.flatnonzero((seen > 0) & (seen < sizes))), key=lambda h: (-seen[h], h))
    together = {open_ones[0], *(h for h in open_ones if seen[h] < 2)} if open_ones else set[int]()
    sets = [together, *({h} for h in open_ones if h not in together)] if together else []
    return [(np.isin(strata.codes, sorted(found)), float(min(seen[h] / sizes[h] for h in found))) for found in sets]


def variance_of_those_alike(ones: Floats, inside: NDArray[np.bool_] | Floats, strata: Strata) -> float:
    """Returns the variance that is added for strata whose members within the domain are all alike.

    ``ones`` are the values of the members, or their deviations from a prediction; ``inside`` says whether a member
    belongs to the domain, or how many of its units do.
    """
    seen, sizes, weights = strata.seen, strata.sizes, strata.weights * inside
    whole = float(weights.sum())
    each = ones / np.maximum(inside, 1)
    alike: dict[float, list[NDArray[np.bool_]]] = {}
    for h in np.flatnonzero((seen > 0) & (seen < sizes)):
        here = (inside > 0) & (strata.codes == h)
        if here.any() and each[here].min() == each[here].max():
            alike.setdefault(float(each[here][0]), []).append(here)
    added = 0.0
    for members in alike.values():
        chance = 1.0 / (sum(int(here.sum()) for here in members) + 2.0)
        for here in members:
            h = strata.codes[here][0]
            share = float(weights[here].sum()) / whole
            added += share**2 * (1 - seen[h] / sizes[h]) * chance * (1 - chance) / int(here.sum())
    return float(added)


def missing_reason(n: int, strata: Strata) -> str | None:
    """Returns why nothing can be estimated of ``n`` rated members; None if something can."""
    if (strata.seen == 0).any():
        return UNSEEN_STRATUM
    return None if n else NOTHING_DRAWN
