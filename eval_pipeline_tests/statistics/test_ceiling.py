"""Accuracy by complexity and its ceiling: merging, invariances, and the bootstrap against a naive one."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from eval_pipeline.statistics.curves import ceiling
from eval_pipeline.statistics.curves._levels import antitonic, by_cluster, merge_small
from eval_pipeline.statistics.curves.ceiling import accuracy_by_level, complexity_ceiling
from eval_pipeline.statistics.intervals import estimate_rate

Turns = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]


def conversations(count: int, length: int, start: float, slope: float, seed: int = 0, spread: float = 0.7) -> Turns:
    """Turns 1..length of ``count`` conversations, each easier or harder than the next by ``spread`` on the log odds."""
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(count), length)
    levels = np.tile(np.arange(1.0, length + 1), count)
    odds = start + slope * levels + rng.normal(0, spread, count)[clusters]
    return levels, (rng.random(levels.size) < 1 / (1 + np.exp(-odds))).astype(float), clusters


@given(st.lists(st.integers(1, 60), max_size=15), st.integers(1, 40))
def test_merged_levels_are_large_enough_contiguous_and_named_after_a_member(counts: list[int], least: int) -> None:
    groups, named = merge_small(np.array(counts, dtype=np.int64), least)
    assert groups.shape == (len(counts),)
    if not counts:
        assert named == []
        return
    assert groups[0] == 0
    assert set(np.diff(groups).tolist()) <= {0, 1}
    sizes = np.bincount(groups, weights=counts)
    assert len(named) == len(sizes)
    assert (sizes >= least).all() or len(sizes) == 1
    assert groups[named].tolist() == list(range(len(sizes)))
    for group, name in enumerate(named[1:], start=1):
        assert name == int(np.argmax(groups == group))
    if sum(counts[: named[0]]) and len(named) > 1:
        assert sum(counts[: named[0]]) < least
    if all(count >= least for count in counts):
        assert groups.tolist() == list(range(len(counts)))


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.integers(0, 12)), min_size=1, max_size=150),
    st.sampled_from([0.25, 0.5, 0.8]),
    st.randoms(use_true_random=False),
)
def test_order_and_labels_do_not_matter_and_null_has_a_reason(
    rows: list[tuple[int, bool, int]], threshold: float, random: object
) -> None:
    levels, correct, clusters = (np.array(column) for column in zip(*rows, strict=True))
    found = complexity_ceiling(levels, correct, clusters, threshold, draws=50, min_per_level=3)
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    levels, correct, clusters = (np.array(column) for column in zip(*shuffled, strict=True))
    again = complexity_ceiling(levels, correct, -7 * clusters, threshold, draws=50, min_per_level=3)
    assert (again.ceiling, again.ceiling_low, again.ceiling_high, again.verdict, again.reason, again.levels) == (
        (found.ceiling, found.ceiling_low, found.ceiling_high, found.verdict, found.reason, found.levels)
    )
    numbers = [found.ceiling, found.ceiling_low, found.ceiling_high, found.slope, found.odds_ratio, found.p_value]
    assert (found.reason is None) == (None not in numbers)
    assert all(v is None or math.isfinite(v) for v in numbers)
    assert (found.ceiling is not None) == (found.verdict == "ceiling observed")
    if found.ceiling_low is not None and found.ceiling_high is not None:
        assert found.ceiling_low <= found.ceiling_high
    assert sum(level.n for level in found.levels) == len(rows)


def test_ceiling_is_found_where_it_was_put() -> None:
    # Log odds 2.25 - level / 2, spread by conversation: a half is crossed between levels 4 and 5.
    found = complexity_ceiling(*conversations(600, 8, 2.25, -0.5))
    assert (found.ceiling, found.verdict, found.reason) == (4.0, "ceiling observed", None)
    assert 3.0 <= found.ceiling_low <= 4.0 <= found.ceiling_high <= 5.0
    assert found.slope == pytest.approx(-0.5, abs=0.1)
    assert found.p_value < 1e-10


def test_a_ceiling_may_lack_an_end_of_its_interval_or_all_of_it() -> None:
    found = complexity_ceiling(*conversations(30, 5, 2.3, -0.5, seed=4))
    assert found.verdict == "ceiling observed"
    assert found.ceiling_low is not None
    assert found.ceiling_high is None
    assert found.reason == "interval open above"
    found = complexity_ceiling(*conversations(30, 5, 0.7, -0.5, seed=9))
    assert (found.ceiling, found.ceiling_low, found.reason) == (1.0, None, "interval open below")
    assert found.ceiling_high is not None
    levels, correct, _ = conversations(50, 4, 3.0, -1.0, spread=0.0)
    found = complexity_ceiling(levels, correct, np.zeros(200, dtype=int))
    assert found.ceiling is not None
    assert found.slope is not None
    assert (found.ceiling_low, found.ceiling_high, found.p_value) == (None, None, None)
    assert found.reason == "one conversation only"
    found = complexity_ceiling([], [], [])
    assert (found.verdict, found.reason, found.levels) == ("insufficient data", "insufficient data", ())
    assert accuracy_by_level([], [], []) == []
    # One group of conversations holds all turns of a level: half of the draws of such a bootstrap lack it.
    levels = np.repeat([1.0, 2.0, 3.0], 40)
    correct = np.concatenate([np.ones(40), np.ones(40), np.zeros(40)])
    clusters = np.concatenate([np.arange(40), np.full(40, 77), np.arange(40)])
    found = complexity_ceiling(levels, correct, clusters)
    assert (found.ceiling, found.ceiling_low, found.ceiling_high) == (2.0, 1.0, 2.0)


def test_turns_without_a_level_are_left_out_and_the_slope_is_of_merged_levels() -> None:
    levels, correct, clusters = conversations(60, 4, 2.0, -0.6)
    more = (np.append(levels, [math.nan, 9.0]), np.append(correct, [1.0, math.nan]), np.append(clusters, [1000, 1001]))
    assert complexity_ceiling(*more) == complexity_ceiling(levels, correct, clusters)
    assert accuracy_by_level(*more) == accuracy_by_level(levels, correct, clusters)
    levels, correct, clusters = conversations(60, 4, 2.0, -0.6)
    far = np.where(levels == 4, np.where(np.arange(levels.size) % 240 < 40, 40.0, 4.0), levels)
    merged = complexity_ceiling(far, correct, clusters)
    assert [(level.level, level.lowest, level.highest) for level in merged.levels][-1] == (4.0, 4.0, 40.0)
    assert merged.slope == complexity_ceiling(levels, correct, clusters).slope


def test_the_seed_decides_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    levels, correct, clusters = conversations(41, 6, 1.0, -0.3)
    table = by_cluster((levels - 1).astype(np.int64), correct, clusters, 6)
    whole = ceiling._bootstrap_held(table, 0.5, 300, seed=3)
    np.testing.assert_array_equal(whole, ceiling._bootstrap_held(table[::-1], 0.5, 300, seed=3))
    assert not np.array_equal(whole, ceiling._bootstrap_held(table, 0.5, 300, seed=4))
    monkeypatch.setattr(ceiling, "_CELLS", 41 * 7)
    np.testing.assert_array_equal(whole, ceiling._bootstrap_held(table, 0.5, 300, seed=3))


def test_bootstrap_has_the_distribution_of_a_naive_one() -> None:
    levels, correct, clusters = conversations(25, 5, 1.0, -0.3, seed=2)
    table = by_cluster((levels - 1).astype(np.int64), correct, clusters, 5)
    draws = 3000
    found = np.bincount(ceiling._bootstrap_held(table, 0.5, draws, seed=0), minlength=6) / draws
    rng, held = np.random.default_rng(99), []
    for _ in range(draws):
        chosen = np.concatenate([np.flatnonzero(clusters == c) for c in rng.choice(25, 25)])
        means = np.array([correct[chosen][levels[chosen] == level].mean() for level in range(1, 6)])
        # All levels have one weight here: 25 turns.
        held.append(int((isotonic_regression(means, increasing=False).x >= 0.5 - 1e-9).sum()))
    expected = np.bincount(held, minlength=6) / draws
    np.testing.assert_allclose(found, expected, atol=4 * math.sqrt(0.5 / draws))
    assert (expected > 0.02).sum() >= 3


@pytest.mark.parametrize(
    ("below", "above", "expected"),
    [
        # Of 1,000 draws in order, the 25th and the 976th are the ends.
        (24, 24, (20.0, 20.0)),
        (25, 25, (10.0, 30.0)),
    ],
)
def test_interval_ends_are_the_outer_order_statistics(below: int, above: int, expected: tuple[float, float]) -> None:
    held = np.repeat([2, 1, 3], [1000 - below - above, below, above])
    low, high, reasons = ceiling._interval(held, np.array([10.0, 20.0, 30.0, 40.0]))
    assert ((low, high), reasons) == (expected, [])


def test_memory_is_bounded_for_many_conversations() -> None:
    turns = conversations(10_000, 4, 2.0, -0.6)
    complexity_ceiling(*turns, draws=1)
    tracemalloc.start()
    complexity_ceiling(*turns, draws=1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # All weights at once would be 80 MB.
    assert peak < 40e6


def test_each_level_has_the_estimate_of_its_turns() -> None:
    levels, correct, clusters = conversations(40, 5, 1.0, -0.4)
    clusters //= 2
    found = accuracy_by_level(levels[::-1], correct[::-1], clusters[::-1])
    assert [entry.level for entry in found] == [1.0, 2.0, 3.0, 4.0, 5.0]
    for entry in found:
        at = levels == entry.level
        assert entry.estimate == estimate_rate(correct[at], clusters[at])
        assert entry.estimate.clusters == 20


rows = st.lists(st.tuples(st.floats(-100, 100), st.integers(1, 50)), min_size=1, max_size=20)
rows_with_gaps = st.lists(st.tuples(st.floats(-1, 1), st.integers(0, 3)), min_size=1, max_size=20)


@given(rows)
def test_is_the_fit_of_scipy_which_fitted_again_does_not_change(pairs: list[tuple[float, int]]) -> None:
    means, weights = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    fit, expected = antitonic(means, weights), isotonic_regression(means, weights=weights, increasing=False).x
    np.testing.assert_allclose(fit, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(antitonic(fit, weights), fit, rtol=1e-12, atol=1e-10)
    assert np.average(fit, weights=weights) == pytest.approx(np.average(means, weights=weights), abs=1e-9)


@given(rows_with_gaps)
def test_never_rises_and_levels_without_weight_do_not_matter(pairs: list[tuple[float, int]]) -> None:
    means, weights = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    fit, seen = antitonic(means, weights), weights > 0
    if not seen.any():
        assert np.isnan(fit).all()
        return
    assert (np.diff(fit) <= 0).all()
    np.testing.assert_allclose(fit[seen], antitonic(means[seen], weights[seen]), rtol=1e-12, atol=1e-12)
    assert np.array_equal(antitonic(np.where(seen, means, np.nan), weights), fit)


def test_leading_axes_are_rows() -> None:
    rng = np.random.default_rng(3)
    means, weights = rng.random((4, 5, 7)), rng.integers(0, 4, (4, 5, 7))
    fit = antitonic(means, weights)
    for index in np.ndindex(4, 5):
        np.testing.assert_array_equal(fit[index], antitonic(means[index], weights[index]))
    assert antitonic(means, 1.0).shape == (4, 5, 7)
