"""Work on other processes and machines: what the runner asks of a cluster, whatever the engine (docs/scale.md)."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from eval_pipeline.core.installed.plugins import Plugin, Registry
from eval_pipeline.core.model import Json

ADDRESS = "EVAL_CLUSTER"
"""Environment variable: the address of the cluster."""
_SHIPPED = "tcp"
Task = Mapping[str, Json]
"""What a shard is made of, as plain values without secrets; `name` identifies it."""
Work = Callable[[Task], Mapping[str, Json]]
"""Computes a shard and puts its part; returns facts about it, among them `seconds`. A function of a module, so that
other processes can import it; computing a shard twice does no harm."""


class Cluster(Protocol):
    """Runs shards somewhere."""

    def map(self, work: Work, tasks: Sequence[Task]) -> Iterator[Mapping[str, Json]]:
        """Yields the facts of each task, in the order of the tasks, as soon as it and those before it are done.

        Raises:
            EvalError: raised by the work, or the cluster cannot do it.
        """

    async def call(self, work: Work, task: Task) -> Mapping[str, Json]:
        """Returns the facts of a single task, for callers that have many of them waiting; raises like `map`."""

    def everywhere(self, work: Callable[[], Mapping[str, Json]]) -> Sequence[Mapping[str, Json]]:
        """Returns what every worker says now, and how many `threads` it has."""


def _opening(plugin: Plugin, value: object) -> Callable[[], AbstractContextManager[Cluster]]:
    if not callable(value):
        raise plugin.error("is no function that opens a cluster")
    return value


ALL_CLUSTERS: Registry[Callable[[], AbstractContextManager[Cluster]]] = Registry("clusters", {}, _opening)
"""What opens the cluster that the environment names, by the scheme of its address."""


def open_cluster() -> AbstractContextManager[Cluster] | None:
    """Returns the cluster that the environment names, to be opened; None if everything runs in this process.

    Raises:
        UsageError: the address is refused, or no package knows such clusters.
        MissingExtraError: what the engine needs is not installed.
    """
    url = os.environ.get(ADDRESS, "").strip()
    return ALL_CLUSTERS.first((url.partition("://")[0], _SHIPPED), ADDRESS)() if url else None
