"""What a turn costs and what a site has, as far as it was measured; all of it can be set by options."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Costs:
    """Of one turn, in CPU seconds of one processor of the machine that was measured.

    Attributes:
        asking: in the process of the run: the call, parsing, the journal.
        executing: of the worker that runs the answer while responses come in.
        comparing: of the worker that compares it with the gold, in shards.
        scoring: in the process of the run: metrics, aggregates, record.
        publishing: in the process that holds the store's lock.
        stored_bytes: size of what is published.
    """

    asking: float
    executing: float
    comparing: float
    scoring: float
    publishing: float
    stored_bytes: float = 1_800


# benchmarks/README.md: a call through the Anthropic SDK (3.5 to 6 ms), scoring, publishing, snippets, variants of
# pandas (184 ms for a right answer, 335 for a wrong one). docs/scale.md: comparing 2,015 answers in SQL (24.1 CPU s).
TRACKS = {
    "finqa": Costs(asking=0.004, executing=0.0, comparing=0.0, scoring=0.00015, publishing=0.00011),
    "sql": Costs(asking=0.004, executing=0.003, comparing=0.012, scoring=0.0004, publishing=0.00015),
    "pandas": Costs(asking=0.004, executing=0.024, comparing=0.235, scoring=0.0004, publishing=0.00015),
}


@dataclass(frozen=True)
class Site:
    """Machines, services and their misfortunes.

    Attributes:
        workers: with one thread each, at least 1.
        runs: how many evaluations are under way at once, each in a process of its own.
        calls_per_s: what all providers together allow.
        in_flight: calls of one evaluation at a time.
        latency_s: of a call.
        journal_per_s: rows that the database takes, in all.
        starting_s: until an evaluation asks its first turn.
        shard_s: CPU seconds of work in a shard.
        shard_overhead_s: CPU seconds that a shard costs its worker besides; the run's process pays a tenth of it.
        deaths_per_hour: of one worker.
        restarting_s: until a dead worker is replaced; its shard starts anew elsewhere at once.
        straggling: share of shards that take `straggling_times` as long.
        catalog: parts are published by each run itself; otherwise one process copies the store and writes to it.
        kept_bytes: size of the store before the night.
        disk_bytes_per_s: at which a store is copied.
    """

    workers: int
    runs: int = 16
    calls_per_s: float = 1_000.0
    in_flight: int = 64
    latency_s: float = 2.0
    journal_per_s: float = 12_000.0
    starting_s: float = 2.5
    shard_s: float = 45.0
    shard_overhead_s: float = 0.02
    deaths_per_hour: float = 0.01
    restarting_s: float = 30.0
    straggling: float = 0.01
    straggling_times: float = 6.0
    catalog: bool = False
    kept_bytes: float = 0.0
    disk_bytes_per_s: float = 400e6


@dataclass(frozen=True)
class Night:
    """Evaluations of equal size: `turns` in all, `evaluations` of them."""

    turns: int
    evaluations: int
    costs: Costs
