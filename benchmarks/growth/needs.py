"""What a site needs so that a night ends in time."""

from dataclasses import dataclass, replace
from math import ceil

from benchmarks.growth.costs import Costs, Night, Site
from benchmarks.growth.night import Outcome, Simulation

HOURS = 8.0
MANY = 100_000
"""More workers than any of the nights can use."""


@dataclass(frozen=True)
class Need:
    """The smallest site that was found for a night, and how the night went there."""

    site: Site
    outcome: Outcome


def hours(night: Night, site: Site) -> float:
    """Returns how long a night takes."""
    return Simulation(night, site).run().seconds / 3600


def _raised(site: Site, name: str) -> Site:
    """Returns the site with twice of what is in use all the time."""
    match name:
        case "runs" | "calls in flight":
            return replace(site, runs=site.runs * 2)
        case "providers":
            return replace(site, calls_per_s=site.calls_per_s * 2)
        case "database":
            return replace(site, journal_per_s=site.journal_per_s * 2)
        case "store":
            return replace(site, catalog=True)
    raise ValueError(name)


def needed(night: Night, site: Site, limit: float = HOURS) -> Need:
    """Returns the site raised until a night ends within `limit` hours.

    What saturates first is doubled as long as workers cannot help; then the number of workers is found by bisection,
    to 5%.
    """
    site = replace(site, workers=MANY)
    while (outcome := Simulation(night, site).run()).seconds > limit * 3600:
        site = _raised(site, outcome.saturated)
    low, high = 0, workers_at_least(night, limit)
    while hours(night, replace(site, workers=high)) > limit:
        low, high = high, high * 2
    while high - low > max(1, high // 20):
        middle = (low + high) // 2
        low, high = (low, middle) if hours(night, replace(site, workers=middle)) <= limit else (middle, high)
    found = replace(site, workers=high)
    return Need(found, Simulation(night, found).run())


def work_s(costs: Costs) -> float:
    """Returns the CPU seconds of workers for a turn."""
    return costs.executing + costs.comparing


def workers_at_least(night: Night, limit: float = HOURS) -> int:
    """Returns how many workers the work takes if nothing else ever holds them up."""
    return max(1, ceil(night.turns * work_s(night.costs) / limit / 3600))
