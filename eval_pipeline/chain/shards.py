"""Runs a stage in shards on a cluster, and writes their rows to the record as a stage that ran here would.

A shard is a range of whole cases. Its name is a hash of the range and of all that decides the stage's result, so that a
part computed by an earlier, interrupted run is used again, and one that was made from anything else is not.
"""

import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow.compute as pc

from eval_pipeline.chain.evaluation import stage_of
from eval_pipeline.chain.freshness import made_from
from eval_pipeline.chain.stage import Facts, Stage
from eval_pipeline.core.errors import EvalError, UsageError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.model import Json, Partition
from eval_pipeline.store.tables import CASES, GENERATIONS
from eval_pipeline.tracks.abilities import evidence_cpu_s_of
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs
from eval_pipeline.workspace.shards.cluster import Cluster, Task
from eval_pipeline.workspace.shards.parts import open_part, part_path, part_rows, parts_folder
from eval_pipeline.workspace.shards.workers import admit, at_home, refuse_other_code, told_home

TURNS_A_SHARD = "EVAL_SHARD_TURNS"
"""Environment variable: answers in a shard; by default what takes up to some 45 CPU seconds (docs/scale.md)."""
SHARD_CPU_S = 45.0


def run_in_shards(stage: Stage, inputs: Inputs, outputs: Outputs, made: Mapping[str, str], cluster: Cluster) -> Facts:
    """Makes the tables of a stage from the parts of its shards, which the cluster computes where they are missing."""
    tasks = tasks_of(stage, inputs, made)
    writers = {table.name: outputs.rows(table) for table in stage.writes}
    told = inputs.counted(stage.name, cluster.map(run_shard, tasks), len(tasks), "shards")
    hosts, files = dict[str, int](), inputs.workspace.place.parts()
    for task, found in zip(tasks, told, strict=True):
        hosts[str(found["host"])] = hosts.get(str(found["host"]), 0) + 1
        for table, row in part_rows(files, part_path(inputs, stage.name, str(task["name"]))):
            writers[table].add(row)
    return {"shards": len(tasks), "workers": dict(sorted(hosts.items()))}


def drop_parts(stage: Stage, inputs: Inputs) -> None:
    """Removes the parts of a stage whose tables are written, those of earlier attempts too."""
    inputs.workspace.place.parts().drop(parts_folder(inputs, stage.name))


def tasks_of(stage: Stage, inputs: Inputs, made: Mapping[str, str]) -> list[Task]:
    """Cuts a stage into shards: plain values that any process with this home can compute a part from."""
    place, base = inputs.place, json_hash(dict(made))
    return [
        {
            "name": json_hash([base, within.start, within.stop])[:32],
            "stage": stage.name,
            "made_from": base,
            "first": within.start,
            "end": within.stop,
            **told_home(inputs.workspace.home),
            "suite": place.suite,
            "model_version": place.model_version,
            "eval_date": place.eval_date.isoformat(),
            "evaluation": place.evaluation,
        }
        for within in cut(_answers_of_cases(inputs), _answers_a_shard(inputs))
    ]


def cut(answers: Sequence[int], most: int) -> Iterator[range]:
    """Yields ranges of whole cases with at most so many answers each, or with a single case that has more.

    Args:
        answers: answers to the turns of each case, in the suite's order; 0 for cases that were not asked.
        most: answers in a range.
    """
    first, found = 0, 0
    for place, count in enumerate(answers):
        if found and found + count > most:
            yield range(first, place)
            first, found = place, 0
        found += count
    if first < len(answers):
        yield range(first, len(answers))


def _answers_of_cases(inputs: Inputs) -> list[int]:
    """Returns the number of answers to the turns of each case, in the suite's order."""
    counted = pc.value_counts(inputs.read(GENERATIONS, ["case_id"])["case_id"].combine_chunks())
    answers = dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True))
    return [answers.get(case_id, 0) for case_id in inputs.read(CASES, ["case_id"])["case_id"].to_pylist()]


def _answers_a_shard(inputs: Inputs) -> int:
    text = os.environ.get(TURNS_A_SHARD, "").strip()
    if not text:
        return max(1, round(SHARD_CPU_S / evidence_cpu_s_of(inputs.track)))
    if not text.isdecimal() or not int(text):
        raise UsageError(f"{TURNS_A_SHARD} is '{text}'; expected a number of answers, at least 1")
    return int(text)


def run_shard(task: Task) -> dict[str, Json]:
    """Computes a part on a worker, unless it is there.

    Returns:
        `host`, `tier` of the sandbox (None without one), `seconds`, and `reused`: whether the part was there.

    Raises:
        UsageError: this worker holds keys of providers, or has other code, libraries or files than the run.
        EvalError: another run has replaced what it read.
        NoSandboxError: it cannot confine what models wrote.
    """
    started = time.monotonic()
    told: dict[str, Json] = {"host": socket.gethostname(), "reused": True, "tier": None}
    suite, version, day = (_text(task, name) for name in ("suite", "model_version", "eval_date"))
    place = Partition(suite, version, date.fromisoformat(day), _text(task, "evaluation"))
    inputs = Inputs.of(at_home(_text(task, "home"), _text(task, "data")), place)
    path = part_path(inputs, _text(task, "stage"), _text(task, "name"))
    if not inputs.workspace.place.parts().exists(path):
        told["tier"] = admit(inputs.workspace, inputs.track)
        stage = stage_of(inputs.track, _text(task, "stage"))
        if not _same(stage, inputs, task):
            raise refuse_other_code()
        within = range(int(task["first"]), int(task["end"]))
        shard = inputs.anew(within=within)
        assert stage.run is not None
        with open_part(shard, stage.writes, path) as outputs:
            stage.run(shard, outputs)
            if not _same(stage, inputs, task):
                raise EvalError(f"what {inputs.label(stage.name)} is made from changed while a shard was computed")
        told["reused"] = False
    return told | {"seconds": time.monotonic() - started}


def _text(task: Task, name: str) -> str:
    found: Any = task[name]
    return str(found)


def _same(stage: Stage, inputs: Inputs, task: Task) -> bool:
    """Whether this worker would make the stage from what the run makes it from."""
    return json_hash(made_from(stage, inputs)) == _text(task, "made_from")
