"""A cluster without other processes, and evaluations whose evidence is computed on it."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from eval_pipeline.chain.evaluation import stage_of
from eval_pipeline.chain.runner import run_chain
from eval_pipeline.core.model import Json
from eval_pipeline.workspace.shards.cluster import Task, Work
from eval_pipeline_tests.support import Lab, Puppet
from eval_pipeline_tests.tracks.sql.helpers import answer, shop_lab

TABLES = ("evidence", "measured_evidence")


class InThisProcess:
    """A cluster without other processes: tasks as they come through the wire, in an order of its own."""

    def __init__(self, order: Callable[[Sequence[Task]], Sequence[Task]] = lambda tasks: list(reversed(tasks))) -> None:
        self.order, self.tasks, self.ran = order, list[Task](), list[str]()
        self.calls = list[Task]()
        self.dies_after: int | None = None

    def everywhere(self, work: Callable[[], Mapping[str, Json]]) -> Sequence[Mapping[str, Json]]:
        far = {"host": "far", "pid": 7, "sandbox": None, "keys": ["OPENAI_API_KEY"], "threads": 4}
        return [{**work(), "threads": 1}, far]

    def map(self, work: Work, tasks: Sequence[Task]) -> Iterator[Mapping[str, Json]]:
        self.tasks = list(tasks)
        told = {}
        for task in self.order(tasks):
            if self.dies_after is not None and len(self.ran) >= self.dies_after:
                raise KeyboardInterrupt
            told[task["name"]] = work(task)
            if not told[task["name"]]["reused"]:
                self.ran.append(str(task["name"]))
        return (told[task["name"]] for task in tasks)

    async def call(self, work: Work, task: Task) -> Mapping[str, Json]:
        self.calls.append(task)
        return json.loads(json.dumps(await asyncio.to_thread(work, task)))


def compared(lab: Lab, suite: str = "small", **fields: Any) -> None:
    """Runs the stages up to the one in shards."""
    inputs = lab.inputs(suite, **fields)
    names = ("raw_dataset", "cases", "generations", "recovery_attempts", "evidence")
    run_chain([stage_of(inputs.track, name) for name in names], inputs)


def files(lab: Lab) -> dict[str, bytes]:
    return {name: lab.record_file(name).read_bytes() for name in TABLES}


def without_evidence(lab: Lab) -> None:
    for name in TABLES:
        lab.record_file(name).unlink()


def answered(lab: Lab, samples: int = 2) -> None:
    """The shop's cases, answered wrongly, with a query that does not run, and well."""
    shop_lab(lab)
    told = {"oslo": "SELECT name FROM customers", "totals": "SELECT nothing FROM orders"}
    Puppet.answer = staticmethod(lambda call: answer(told.get(call.turn_id.split("/")[1].split("#")[0])))
    lab.versions({"name": "puppet", "provider": "puppet", "samples_per_turn": samples, "max_recovery_attempts": 0})
