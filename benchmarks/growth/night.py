"""Simulates a night event by event; the seconds are those of the simulated clock.

An evaluation holds one of the places for runs. It asks its turns in blocks, which take their time from the limits of
providers and of the database; answers are executed by workers meanwhile. Then its shards are compared by workers,
started by the very rules that the cluster's port uses (`TaskLedger`), scored, and published.
"""

import random
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import simpy

from benchmarks.growth.costs import Night, Site
from eval_pipeline_plugins.dask.stragglers import TaskLedger

RESOURCES = ("runs", "calls in flight", "workers", "providers", "database", "store")

BLOCK = 500
"""So many turns are asked, journalled and executed as one event; the fewer, the slower the simulation."""

Steps = Generator[simpy.Event, Any, Any]


@dataclass
class Outcome:
    """What came of a night.

    Attributes:
        seconds: until the last evaluation is published.
        busy: share of that time in which each resource was in use, by name.
        shards: started, second copies and repetitions included.
        deaths: of workers at work.
    """

    seconds: float = 0.0
    busy: dict[str, float] = field(default_factory=dict)
    shards: int = 0
    deaths: int = 0

    @property
    def saturated(self) -> str:
        """The resource that was in use for the largest share of the time."""
        return max(self.busy, key=lambda name: self.busy[name])


@dataclass(frozen=True)
class Shards:
    """The shards of an evaluation, each of so many CPU seconds; `whole` happens when all are done."""

    ledger: TaskLedger
    seconds: float
    whole: simpy.Event


class Simulation:
    """One night at one site."""

    def __init__(self, night: Night, site: Site, seed: int = 1) -> None:
        self.night, self.site = night, site
        self.clock = simpy.Environment()
        self.random = random.Random(seed)
        self.runs = simpy.Resource(self.clock, site.runs)
        self.workers = simpy.PriorityResource(self.clock, site.workers)
        self.provider = simpy.Resource(self.clock, 1)
        self.database = simpy.Resource(self.clock, 1)
        self.store = simpy.Resource(self.clock, 1)
        self.outcome = Outcome()
        self._used = dict.fromkeys(RESOURCES, 0.0)

    def run(self) -> Outcome:
        """Runs the night to its end."""
        size, over = divmod(self.night.turns, self.night.evaluations)
        sizes = [size + (number < over) for number in range(self.night.evaluations)]
        whole = self.clock.all_of([self.clock.process(self._evaluation(turns)) for turns in sizes])
        self.clock.run(whole)
        if not self.site.catalog:
            self.clock.run(self.clock.process(self._published_together()))
        self.outcome.seconds = self.clock.now
        capacity = {"runs": self.site.runs, "calls in flight": self.site.runs, "workers": self.site.workers}
        self.outcome.busy = {name: used / self.clock.now / capacity.get(name, 1) for name, used in self._used.items()}
        return self.outcome

    def _evaluation(self, turns: int) -> Steps:
        costs = self.night.costs
        with self.runs.request() as place:
            yield place
            yield from self._working(self.site.starting_s)
            executed = []
            for start in range(0, turns, BLOCK):
                count = min(BLOCK, turns - start)
                yield from self._asked(count)
                if costs.executing:
                    executed.append(self.clock.process(self._done(count * costs.executing, first=True)))
            yield self.clock.all_of(executed)
            if costs.comparing:
                yield from self._compared(turns)
            yield from self._working(turns * costs.scoring)
            if self.site.catalog:
                yield from self._working(turns * costs.publishing)

    def _working(self, seconds: float) -> Steps:
        """The process of a run does something itself."""
        self._used["runs"] += seconds
        yield self.clock.timeout(seconds)

    def _asked(self, count: int) -> Steps:
        """A block of turns: the slowest of latency, the run's own processor, providers and database decides."""
        began = self.clock.now
        own = count * self.night.costs.asking
        self._used["runs"] += own
        yield from self._served(self.provider, "providers", count / self.site.calls_per_s)
        yield from self._served(self.database, "database", count / self.site.journal_per_s)
        answering = count * self.site.latency_s / self.site.in_flight
        self._used["calls in flight"] += answering
        least = max(own, answering)
        yield self.clock.timeout(max(0.0, began + least - self.clock.now))

    def _served(self, resource: simpy.Resource, name: str, seconds: float) -> Steps:
        with resource.request() as turn:
            yield turn
            self._used[name] += seconds
            yield self.clock.timeout(seconds)

    def _compared(self, turns: int) -> Steps:
        """All shards of an evaluation; as many at a time as there are workers, and second copies of the late ones."""
        work = turns * self.night.costs.comparing
        count = max(1, round(work / self.site.shard_s))
        shards = Shards(TaskLedger(count), work / count, self.clock.event())
        for _ in range(min(count, self.site.workers)):
            self.clock.process(self._lane(shards))
        while not shards.whole.triggered:
            yield shards.whole | self.clock.timeout(shards.seconds / 2)
            while len(shards.ledger.since) == count and (late := shards.ledger.next(self.clock.now)) is not None:
                self.clock.process(self._shard(shards, late))
        yield from self._working(count * self.site.shard_overhead_s / 10)

    def _lane(self, shards: Shards) -> Steps:
        """Hands one shard after the other to the workers."""
        while (task := shards.ledger.next(self.clock.now)) is not None:
            yield from self._shard(shards, task)

    def _shard(self, shards: Shards, task: int) -> Steps:
        """One copy of a shard; the stage ends with the first copy of the last one."""
        self.outcome.shards += 1
        slow = self.site.straggling_times if self.random.random() < self.site.straggling else 1.0
        yield from self._done(shards.seconds * slow + self.site.shard_overhead_s)
        shards.ledger.ended(task, self.clock.now)
        if shards.ledger.finished and not shards.whole.triggered:
            shards.whole.succeed()

    def _done(self, seconds: float, *, first: bool = False) -> Steps:
        """A worker's job; if it dies the job starts anew with another one, and its place is empty for a while."""
        while True:
            request = self.workers.request(priority=0 if first else 1)
            yield request
            lives = self._lifetime_s()
            self._used["workers"] += min(lives, seconds)
            yield self.clock.timeout(min(lives, seconds))
            if lives >= seconds:
                self.workers.release(request)
                return
            self.outcome.deaths += 1
            self.clock.process(self._replaced(request))

    def _lifetime_s(self) -> float:
        deaths = self.site.deaths_per_hour
        return self.random.expovariate(deaths / 3600) if deaths else float("inf")

    def _replaced(self, request: simpy.resources.resource.PriorityRequest) -> Steps:
        yield self.clock.timeout(self.site.restarting_s)
        self.workers.release(request)

    def _published_together(self) -> Steps:
        """One copy of the store at the end of the night, and the new rows."""
        new = self.night.turns * self.night.costs.stored_bytes
        copying = (self.site.kept_bytes + new) / self.site.disk_bytes_per_s
        yield from self._served(self.store, "store", copying + self.night.turns * self.night.costs.publishing)
