"""Real runs of one stage on this machine, beside what the simulation says of them.

The answers of 13 samples to `sql_sample` are made once. Then their evidence is computed three times from the same
answers: in one process, by one worker of Dask, and by two. What one process takes is what the simulation is told; what
it says of one and two workers is compared.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import psutil
import yaml

from benchmarks.costs import Cost, peak_mib, written_mib
from benchmarks.growth.costs import TRACKS, Night, Site
from benchmarks.growth.night import Simulation

SAMPLES = 13
ANSWERS_A_SHARD = 130
DAY = date(2026, 1, 1)
VERSION = "simulated-strong"
PORT = 18786
QUIET = {
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "5s",
    "DASK_DISTRIBUTED__WORKER__MEMORY__MONITOR_INTERVAL": "1s",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
}
"""Settings of Dask with which idle schedulers and workers take little of a processor, as docs/scale.md advises."""
UNSEEN = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")
BEFORE = ("raw_dataset", "cases", "generations", "recovery_attempts")


def staged(*names: str) -> dict[str, float]:
    """Runs stages of the evaluation in this process; returns the answers, and what the last took."""
    from eval_pipeline.chain.evaluation import stage_of
    from eval_pipeline.chain.runner import run_stage
    from eval_pipeline.core.home import find_home
    from eval_pipeline.core.model import Partition
    from eval_pipeline.store.tables import GENERATIONS
    from eval_pipeline.workspace.inputs import Inputs
    from eval_pipeline.workspace.runs import RunContext
    from eval_pipeline.workspace.workspace import Workspace

    inputs = Inputs.of(Workspace(find_home()), Partition("sql_sample", VERSION, DAY), run=RunContext("check"))
    for name in names:
        began, cpu = time.perf_counter(), time.process_time()
        run_stage(stage_of(inputs.track, name), inputs)
    took = {"seconds": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}
    return took | {"answers": inputs.read(GENERATIONS, ["case_id"]).num_rows}


def _child(place: Path, *names: str, **more: str) -> dict[str, float]:
    environment = os.environ | {"EVAL_HOME": str(place / "home"), "EVAL_DATA": str(place / "data")} | more
    command = [sys.executable, "-m", "benchmarks.growth.check", *names]
    return json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout)


@dataclass(frozen=True)
class Dask:
    """A scheduler and workers on loopback.

    Attributes:
        address: of the scheduler.
        processes: the scheduler, and the workers with what they start.
    """

    address: str
    processes: "list[subprocess.Popen[bytes]]"

    def costs(self) -> list[Cost]:
        """What each worker has taken so far."""
        nannies = [psutil.Process(process.pid) for process in self.processes[1:]]
        workers = [
            child for nanny in nannies for child in nanny.children() if "spawn_main" in " ".join(child.cmdline())
        ]
        return [Cost(sum(worker.cpu_times()), peak_mib(worker.pid), 0, written_mib(worker.pid)) for worker in workers]


@contextmanager
def dask(workers: int) -> Iterator[Dask]:
    """Starts a scheduler and workers on loopback; they end with the block."""
    address, run = f"tcp://127.0.0.1:{PORT}", [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    keyless = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")} | QUIET
    quiet["env"] = keyless
    processes = [subprocess.Popen([*run, "--host", "127.0.0.1", "--port", str(PORT), *UNSEEN], **quiet)]
    run = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--host", "127.0.0.1", "--nworkers", "1"]
    processes += [subprocess.Popen([*run, "--nthreads", "1", *UNSEEN], **quiet) for _ in range(workers)]
    try:
        _wait_for(address, workers)
        yield Dask(address, processes)
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait()


def _wait_for(address: str, workers: int) -> None:
    from distributed import Client

    with Client(address, timeout=60) as client:
        client.wait_for_workers(workers, timeout=60)


def predicted(alone: dict[str, float], workers: int) -> float:
    """Returns the seconds that the simulation says for the stage, from those of one process."""
    each = alone["seconds"] / alone["answers"]
    costs = replace(
        TRACKS["sql"], asking=0.0, executing=0.0, comparing=each, scoring=0.0, publishing=0.0, stored_bytes=0
    )
    site = Site(workers, starting_s=0.0, latency_s=0.0, deaths_per_hour=0.0, straggling=0.0, calls_per_s=1e9)
    site = replace(site, journal_per_s=1e9, shard_s=ANSWERS_A_SHARD * each)
    return Simulation(Night(int(alone["answers"]), 1, costs), site).run().seconds


@contextmanager
def answered() -> Iterator[Path]:
    """Makes a place with the answers whose evidence is to be computed; it is gone after the block."""
    shipped = Path(__file__).parents[2] / "data"
    with tempfile.TemporaryDirectory(prefix="eval-growth-") as folder:
        asked = Path(folder, "asked")
        shutil.copytree(shipped / "suites" / "sql_sample", asked / "data" / "suites" / "sql_sample")
        entries = yaml.safe_load((shipped / "model_versions.yaml").read_text())["model_versions"]
        version = next(entry for entry in entries if entry["name"] == VERSION) | {"samples_per_turn": SAMPLES}
        (asked / "data" / "model_versions.yaml").write_text(yaml.safe_dump({"model_versions": [version]}))
        _child(asked, *BEFORE)
        yield asked


def evidence(asked: Path, **more: str) -> dict[str, float]:
    """Computes the evidence of a copy of the answers in a process of its own; returns what `staged` does."""
    with tempfile.TemporaryDirectory(dir=asked.parent) as folder:
        return _child(Path(shutil.copytree(asked, Path(folder, "copy"))), "evidence", **more)


def check() -> None:
    """Prints both, with their ratio."""
    with answered() as asked:
        alone = evidence(asked)
        print(f"one process: {alone['answers']} answers in {alone['seconds']:.1f} s")
        for workers in (1, 2):
            with dask(workers) as cluster:
                real = evidence(asked, EVAL_CLUSTER=cluster.address, EVAL_SHARD_TURNS=str(ANSWERS_A_SHARD))["seconds"]
            said = predicted(alone, workers)
            print(f"{workers} worker(s): {real:.1f} s; simulated {said:.1f} s; ratio {said / real:.2f}", flush=True)


if __name__ == "__main__":
    print(json.dumps(staged(*sys.argv[1:])))
