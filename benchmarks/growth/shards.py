"""What small shards cost, and what a second worker gains: the same evidence again and again on this machine.

In each round one worker computes it in shards of 130 answers and of 13, first the ones and then the others in turn, and
two workers in shards of 130. Reported are ratios within a round, so that the machine's speed concerns both alike.
"""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from distributed import Client

from benchmarks.growth.check import ANSWERS_A_SHARD, Dask, answered, dask, evidence
from benchmarks.versus import told

SMALL = 13


@dataclass(frozen=True)
class Took:
    """What the evidence took.

    Attributes:
        seconds: by the clock.
        cpu_s: of the run, the scheduler and the workers with their children.
    """

    seconds: float
    cpu_s: float


def measured(asked: Path, cluster: Dask, size: int) -> Took:
    """Computes the evidence in shards of that many answers."""
    before = _cpu_s(cluster)
    found = evidence(asked, EVAL_CLUSTER=cluster.address, EVAL_SHARD_TURNS=str(size))
    return Took(found["seconds"], found["cpu_s"] + _cpu_s(cluster) - before)


def compare(rounds: int) -> None:
    """Prints what each round took, and the ratios of all."""
    cpu, clock, faster = [], [], []
    with answered() as asked:
        for number in range(rounds):
            with started(1) as cluster:
                sizes = (ANSWERS_A_SHARD, SMALL) if number % 2 == 0 else (SMALL, ANSWERS_A_SHARD)
                found = {size: measured(asked, cluster, size) for size in sizes}
            with started(2) as cluster:
                two = measured(asked, cluster, ANSWERS_A_SHARD)
            one, small = found[ANSWERS_A_SHARD], found[SMALL]
            cpu.append(small.cpu_s / one.cpu_s)
            clock.append(small.seconds / one.seconds)
            faster.append(one.seconds / two.seconds)
            for name, took in (("one worker", one), (f"shards of {SMALL}", small), ("two workers", two)):
                print(f"{name}: {took.seconds:.1f} s, {took.cpu_s:.1f} CPU s", end="; ")
            print(flush=True)
    print(told("small, CPU", cpu), told("small, clock", clock), told("two, gain", faster), sep="\n")


@contextmanager
def started(workers: int) -> Iterator[Dask]:
    """Starts workers that have the package loaded, as those of a night have after their first shard."""
    with dask(workers) as cluster:
        with Client(cluster.address) as client:
            client.run(importlib.import_module, "eval_pipeline.chain.shards")
        yield cluster


def _cpu_s(cluster: Dask) -> float:
    """CPU seconds of scheduler and workers so far, with what they have started."""
    roots = [psutil.Process(process.pid) for process in cluster.processes]
    every = [one for root in roots for one in (root, *root.children(recursive=True))]
    return sum(sum(one.cpu_times()[:4]) for one in every)  # the fifth is waiting for a disk
