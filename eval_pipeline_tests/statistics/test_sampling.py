"""Figures of a population from a stratified sample: against the textbook, every possible draw, and by simulation."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.statistics.raters.agreement import cohens_kappa
from eval_pipeline.statistics.samples.sampling import (
    LONE_MEMBER,
    NO_SPREAD,
    NOTHING_DRAWN,
    ONE_WORD,
    UNSEEN_STRATUM,
    Strata,
    drawn_kappa,
    drawn_rate,
)


def strata(codes: list[int], sizes: list[int]) -> Strata:
    return Strata(np.array(codes, dtype=np.int64), np.array(sizes, dtype=np.int64))


def test_shares_of_a_sample_and_of_a_domain_are_the_textbooks() -> None:
    # Worked by hand: W = 0.8, 0.2; p = 1/2, 1/4; s2 = 1/3, 1/4; v = .64(1 - 4/80)/12 + .04(1 - 4/20)/16.
    found = drawn_rate([1, 1, 0, 0, 1, 0, 0, 0], [True] * 8, strata([0] * 4 + [1] * 4, [80, 20]))
    assert found.value == pytest.approx(0.8 * 0.5 + 0.2 * 0.25)
    assert found.se == pytest.approx((0.64 * 0.95 / 12 + 0.04 * 0.8 / 16) ** 0.5)
    assert (found.n, found.population, found.reason) == (8, pytest.approx(100.0), None)
    inside = [True, False, True, True, False]
    found = drawn_rate([1, 1, 0, 1, 0], inside, strata([0, 0, 0, 1, 1], [30, 10]))
    assert found.value == pytest.approx((10 * 1 + 5 * 1) / (10 * 2 + 5 * 1))
    assert (found.n, found.population) == (3, pytest.approx(25.0))
    # By hand: weights 10, 10, 10, 10 and 20 on 1, 0, 1, 0 and 1; as one group of five the jackknife is
    # 4/5 sum (f_i - mean)^2 over f_i = (40 - w y)/(60 - w), times 1 - 1/20, the lesser share.
    found = drawn_rate([1, 0, 1, 0, 1], [True] * 5, strata([0, 0, 0, 0, 1], [40, 20]))
    each = np.array([30 / 50, 40 / 50, 30 / 50, 40 / 50, 20 / 40])
    jackknife = 0.95 * 0.8 * ((each - each.mean()) ** 2).sum()
    alone = (20 / 60) ** 2 * (1 - 1 / 20) * (1 / 3) * (2 / 3)  # all of that kind are alike
    assert found.value == pytest.approx(40 / 60)
    assert found.se == pytest.approx((jackknife + alone) ** 0.5)


def test_every_possible_draw_together_gives_the_truth() -> None:
    """The estimate is unbiased, not only nearly: its mean over all draws is the share, to rounding."""
    population = [[1, 1, 0, 1, 1], [0, 1, 0]]
    draws = product(combinations(population[0], 3), combinations(population[1], 2))
    values = [drawn_rate([*one, *other], [True] * 5, strata([0] * 3 + [1] * 2, [5, 3])).value for one, other in draws]
    assert np.mean(values) == pytest.approx(5 / 8, abs=1e-12)  # type: ignore[arg-type]


def test_only_who_has_seen_everything_is_certain() -> None:
    found = drawn_rate([1, 0, 1, 1], [True] * 4, strata([0, 0, 1, 1], [2, 2]))
    assert (found.value, found.se, found.low, found.high) == (0.75, 0.0, 0.75, 0.75)
    found = drawn_rate([1] * 10, [True] * 10, strata([0] * 5 + [1] * 5, [500, 500]))
    assert found.value == found.high == 1.0
    assert 0.5 < found.low < 0.9
    found = drawn_rate([1] * 5 + [0] * 5, [True] * 10, strata([0] * 5 + [1] * 5, [500, 500]))
    assert found.value == 0.5
    assert found.se > 0.05
    found = drawn_kappa([1, 1, 1, 1], [1, 0, 1, 1], [True] * 4, strata([0] * 4, [40]))
    assert (found.value, found.low, found.reason) == (0.0, None, ONE_WORD)
    found = drawn_kappa([1, 0, 1, 0], [1, 0, 1, 0], [True] * 4, strata([0] * 4, [40]))
    assert (found.value, found.low, found.reason) == (1.0, None, NO_SPREAD)
    found = drawn_kappa([1, 0, 1, 0], [1, 0, 1, 0], [True] * 4, strata([0] * 4, [4]))
    assert (found.value, found.low, found.high) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("codes", "values", "domain", "reason"),
    [
        ([0, 0], [1, 0], [True, True], UNSEEN_STRATUM),
        ([0], [1], [True], LONE_MEMBER),
        ([0, 0, 1, 1], [1, 0, 1, 1], [False] * 4, NOTHING_DRAWN),
    ],
)
def test_what_cannot_be_told_has_a_reason(codes: list[int], values: list[int], domain: list[bool], reason: str) -> None:
    of = strata(codes, [10] * (1 + (codes != [0])))
    of_two = [drawn_kappa(values, values, domain, of)] * (len(codes) > 1)
    for found in (drawn_rate(values, domain, of), *of_two):
        assert (found.low, found.high, found.reason) == (None, None, reason)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=4, max_size=60))
def test_a_sample_of_one_kind_is_the_ordinary_figure(said: list[tuple[bool, bool]]) -> None:
    """Every weight the same: share and kappa are those of the sample itself."""
    first, second = [int(a) for a, _ in said], [int(b) for _, b in said]
    one = strata([0] * len(said), [1000])
    assert drawn_rate(first, [True] * len(said), one).value == pytest.approx(np.mean(first))
    mine, theirs = drawn_kappa(first, second, [True] * len(said), one), cohens_kappa(first, second, range(len(said)))
    assert mine.value == (theirs.kappa if theirs.kappa is None else pytest.approx(theirs.kappa))
    if theirs.se is not None and mine.se is not None:  # the jackknife there, less the share that was drawn
        assert mine.se == pytest.approx(theirs.se * (1 - len(said) / 1000) ** 0.5, abs=1e-9)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.booleans()), max_size=30),
    st.lists(st.integers(1, 50), min_size=3, max_size=3),
)
def test_intervals_are_in_order_and_in_bounds(said: list[tuple[int, bool, bool]], more: list[int]) -> None:
    codes = [code for code, _, _ in said]
    of = strata(codes, [codes.count(code) + extra - 1 or 1 for code, extra in enumerate(more)])
    rate = drawn_rate([int(a) for _, a, _ in said], [b for _, _, b in said], of)
    if rate.low is not None:
        assert 0.0 <= rate.low <= rate.value <= rate.high <= 1.0
    kappa = drawn_kappa([int(a) for _, a, _ in said], [int(b) for _, _, b in said], [True] * len(said), of)
    if kappa.low is not None:
        assert -1.0 <= kappa.low <= kappa.value <= kappa.high <= 1.0


@pytest.mark.parametrize("drawn", [(4, 30, 60, 6), (2, 10, 25, 3)])
@pytest.mark.parametrize("rates", [(0.5, 0.3, 0.02, 0.98), (0.1, 0.05, 0.01, 0.1), (0.9, 0.9, 0.99, 0.9)])
def test_intervals_of_rare_things_in_small_kinds_cover(drawn: tuple[int, ...], rates: tuple[float, ...]) -> None:
    """Where the plain interval fails: most kinds show none of what is looked for, or nothing else."""
    rng = np.random.default_rng(0)
    sizes, draws = (60, 300, 1200, 140), 150
    population = [rng.permutation(size) < round(rate * size) for size, rate in zip(sizes, rates, strict=True)]
    truth = sum(int(kind.sum()) for kind in population) / sum(sizes)
    of = strata([code for code, count in enumerate(drawn) for _ in range(count)], list(sizes))
    hits, values = 0, []
    for _ in range(draws):
        seen = [rng.choice(kind, count, replace=False) for kind, count in zip(population, drawn, strict=True)]
        found = drawn_rate(np.concatenate(seen), [True] * sum(drawn), of)
        hits += found.low <= truth <= found.high
        values.append(found.value)
    assert hits / draws >= 0.92
    assert abs(np.mean(values) - truth) < 4 * np.std(values) / draws**0.5
