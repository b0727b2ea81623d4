"""The simulator of nights: cases that can be worked out by hand, and what must hold for any site."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.growth.costs import Costs, Night, Site
from benchmarks.growth.needs import needed, work_s
from benchmarks.growth.night import Outcome, Simulation

FREE = Costs(asking=0.0, executing=0.0, comparing=0.0, scoring=0.0, publishing=0.0, stored_bytes=0.0)
CALM = Site(
    workers=1,
    runs=1,
    calls_per_s=1e9,
    latency_s=0.0,
    journal_per_s=1e9,
    starting_s=0.0,
    deaths_per_hour=0.0,
    straggling=0.0,
)


def seconds(turns: int, costs: Costs, site: Site, evaluations: int = 1) -> float:
    return simulated(turns, costs, site, evaluations).seconds


def simulated(turns: int, costs: Costs, site: Site, evaluations: int = 1) -> Outcome:
    return Simulation(Night(turns, evaluations, costs), site).run()


@pytest.mark.parametrize(
    ("costs", "site", "expected"),
    [
        # 10,000 turns at 100 calls a second.
        (FREE, replace(CALM, calls_per_s=100.0), 100.0),
        # 10,000 rows at 50 a second.
        (FREE, replace(CALM, journal_per_s=50.0), 200.0),
        # 64 in flight, 2 s each: 32 a second; two evaluations at a time share nothing.
        (FREE, replace(CALM, latency_s=2.0), 312.5),
        (FREE, replace(CALM, latency_s=2.0, runs=2), 156.25),
        # The process of the run needs longer than the models.
        (replace(FREE, asking=0.04), replace(CALM, latency_s=2.0), 400.0),
        # 10,000 turns of 45 ms are 450 s, and ten shards of 45 s cost 0.02 s each for the worker, 0.002 for the run.
        (replace(FREE, comparing=0.045), CALM, 450.0 + 2 * (5 * 0.02 + 5 * 0.002)),
        (replace(FREE, comparing=0.045), replace(CALM, runs=2, workers=2), 225.0 + 5 * 0.02 + 5 * 0.002),
        (replace(FREE, scoring=0.01), CALM, 100.0),
        # Publishing is for one process; with the catalog it is for each run.
        (replace(FREE, publishing=0.01), replace(CALM, runs=2), 100.0),
        (replace(FREE, publishing=0.01), replace(CALM, runs=2, catalog=True), 50.0),
        # A store of 4 GB at 400 MB a second.
        (FREE, replace(CALM, kept_bytes=4e9), 10.0),
    ],
)
def test_nights_that_can_be_worked_out(costs: Costs, site: Site, expected: float) -> None:
    assert seconds(10_000, costs, site, evaluations=2) == pytest.approx(expected, rel=1e-5)


def test_what_takes_longest_is_named() -> None:
    assert simulated(1_000, FREE, replace(CALM, calls_per_s=10.0)).saturated == "providers"
    assert simulated(1_000, FREE, replace(CALM, latency_s=5.0)).saturated == "calls in flight"
    assert simulated(1_000, replace(FREE, comparing=1.0), CALM).saturated == "workers"
    assert simulated(1_000, replace(FREE, scoring=1.0), CALM).saturated == "runs"
    assert simulated(1_000, replace(FREE, publishing=1.0), CALM).saturated == "store"


def test_a_second_copy_of_a_late_shard_wins() -> None:
    """Three shards in a hundred take a hundred times as long; whoever waits for one waits 4,500 s."""
    site = replace(CALM, workers=20, straggling=0.03, straggling_times=100.0)
    found = simulated(100_000, replace(FREE, comparing=0.045), site)
    assert found.shards > 100
    assert found.seconds < 4_500


@settings(max_examples=30, deadline=None)
@given(
    turns=st.integers(1, 20_000),
    evaluations=st.integers(1, 5),
    workers=st.integers(1, 8),
    deaths=st.sampled_from([0.0, 1.0, 20.0]),
)
def test_no_work_is_lost_or_done_for_nothing(turns: int, evaluations: int, workers: int, deaths: float) -> None:
    costs = replace(FREE, executing=0.01, comparing=0.05)
    site = replace(CALM, workers=workers, runs=3, deaths_per_hour=deaths)
    found = simulated(turns, costs, site, min(evaluations, turns))
    used = found.busy["workers"] * workers * found.seconds
    assert used >= turns * work_s(costs) * (1 - 1e-9)
    assert found.seconds >= turns * work_s(costs) / workers
    assert max(found.busy.values()) <= 1 + 1e-9
    if not deaths:
        assert found.deaths == 0
        assert found.shards == 0 or used <= turns * work_s(costs) + found.shards * (site.shard_overhead_s + 1e-6)


def test_what_a_night_needs_is_enough_and_not_much_more() -> None:
    night = Night(400_000, 20, replace(FREE, comparing=0.5))
    found = needed(night, CALM, limit=2.0)
    assert found.outcome.seconds <= 2 * 3600
    less = replace(found.site, workers=int(found.site.workers * 0.9))
    assert Simulation(night, less).run().seconds > 2 * 3600


def test_limits_that_workers_cannot_lift_are_raised_first() -> None:
    night = Night(1_000_000, 20, FREE)
    found = needed(night, replace(CALM, calls_per_s=100.0, latency_s=1.0), limit=1.0)
    assert found.site.calls_per_s == 400.0
    assert found.site.runs == 8
    assert found.site.workers == 1
