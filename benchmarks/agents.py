"""What an attempt of an agent costs with a model that answers at once: `python -m benchmarks.agents [--attempts 1000]`.

With `--peers`, Inspect's own agent does the same tasks beside it, in folders instead of jails.

Each attempt makes 12 calls of tools in a world of its own; the whole evaluation runs, from cases to the published
store, in a process of its own, with the journal on disk. CPU seconds are those of all its processes, jails included
(the most that was seen at a time: who ends a jail does not learn what its processes have used); start-up and what does
not depend on the number of attempts are taken off by a smaller run. `quick` calls `sql` and the tools for files only,
`mixed` Python and a shell as well.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil

from benchmarks.costs import Cost, peak_mib
from benchmarks.peers.harnesses import HERE, PEERS
from benchmarks.pipeline import fixed_work_s

FEW, CASES, SAMPLES = 100, 10, 100
_BUILD = """
import sqlite3
with sqlite3.connect("shop.sqlite") as database:
    database.execute("CREATE TABLE orders (id INTEGER, customer TEXT, total REAL)")
    database.executemany("INSERT INTO orders VALUES (?, ?, ?)", [(n, f"c{n % 50}", n * 1.5) for n in range(2000)])
"""
_SQL = {"sql": "SELECT customer, sum(total) AS total FROM orders GROUP BY 1 ORDER BY 2 DESC LIMIT 10"}
_LOOK = [{"list_files": "."}, {"read_file": "notes.md"}, _SQL, {"sql": "SELECT count(*) FROM orders"}]
_WRITE = {"write_file": {"path": "out/left.csv", "text": "n\n2000\n"}}
WAYS = {
    "quick": [*_LOOK, _SQL, _WRITE, *_LOOK, _SQL, {"read_file": "out/left.csv"}],
    "mixed": [
        *_LOOK,
        {"python": "total = 1 + 1; total"},
        _WRITE,
        *_LOOK,
        {"shell": "wc -l notes.md"},
        {"python": "total"},
    ],
}


def write_data(place: Path, way: str, attempts: int) -> None:
    """Writes a suite of tasks whose gold makes 12 calls and answers, asked so often that there are so many attempts."""
    count = max(CASES, attempts // SAMPLES)
    suite = place / "data" / "suites" / "bench"
    files = suite / "worlds" / "shop" / "files"
    files.mkdir(parents=True)
    (files / "notes.md").write_text("Totals are in euro.\n" * 20)
    (suite / "worlds" / "shop" / "build.py").write_text(_BUILD)
    (suite / "worlds" / "shop" / "world.yaml").write_text("databases:\n  shop: {file: shop.sqlite}\n")
    (suite / "suite.yaml").write_text("name: bench\nversion: '1'\ntrack: agent\ncases: cases.jsonl\n")
    cases = (
        {"id": f"t{n}", "world": "shop", "task": f"Task {n}: how many orders?", "gold": [*WAYS[way], {"answer": 2000}]}
        for n in range(count)
    )
    (suite / "cases.jsonl").write_text("".join(f"{json.dumps(case)}\n" for case in cases))
    version = {"name": "oracle", "provider": "oracle", "samples_per_turn": attempts // count, "concurrency": 4}
    (place / "data" / "model_versions.yaml").write_text(json.dumps({"model_versions": [version]}))


def run(way: str, attempts: int) -> Cost:
    """What one evaluation of that many attempts takes."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_data(place, way, attempts)
        os.environ |= {"EVAL_HOME": str(place / "home"), "EVAL_DATA": str(place / "data")}
        command = [sys.executable, "-c", "from eval_pipeline.cli import main; main()"]
        cost = _seen([*command, "run", "--suite", "bench", "--model-version", "oracle", "--no-report"])
    if cost.code:
        raise SystemExit(f"the run ended with {cost.code}")
    return cost


def run_peer(place: Path, way: str, attempts: int) -> Cost:
    """What Inspect takes for the same, with a log of every attempt."""
    peer = next(one for one in PEERS if one.name == "inspect-ai")
    peer.install(place)
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder), way, attempts)
        suite = Path(folder) / "data" / "suites" / "bench"
        world = suite / "worlds" / "shop" / "files"
        subprocess.run([sys.executable, "-c", _BUILD], cwd=world, check=True)
        command = [str(place / peer.package / "venv/bin/python"), str(HERE / "inspect_agent.py")]
        cost = _seen([*command, str(suite / "cases.jsonl"), str(world), str(attempts), str(Path(folder) / "logs")])
    if cost.code:
        raise SystemExit(f"{peer.package} ended with {cost.code}")
    return cost


def _seen(command: list[str]) -> Cost:
    """Runs a command to its end and looks at all its processes on the way."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    cpu_s = peak = 0.0
    while process.poll() is None:
        peak = max(peak, peak_mib(process.pid))
        cpu_s = max(cpu_s, _used(process.pid))
        time.sleep(0.1)
    return Cost(cpu_s, peak, process.returncode)


def _used(pid: int) -> float:
    """CPU seconds of a process, of its descendants, and of what they waited for."""
    used = 0.0
    with suppress(psutil.NoSuchProcess):
        top = psutil.Process(pid)
        for one in (top, *top.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                times = one.cpu_times()
                used += times.user + times.system + times.children_user + times.children_system
    return used


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attempts", type=int, default=1000)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--place", type=Path, default=Path("tmp/peers"), help="where the peers are installed")
    chosen = parser.parse_args()
    attempts = chosen.attempts
    harnesses: dict[str, Callable[[str, int], Cost]] = {"eval_pipeline": run}
    if chosen.peers:
        harnesses["inspect-ai"] = partial(run_peer, chosen.place.resolve())
    print(
        "| harness | tools | CPU ms an attempt | MiB at most, 100 attempts | MiB at most, all |\n|---|---|---|---|---|"
    )
    for way in WAYS:
        for name, measured in harnesses.items():
            few, all_of_them = measured(way, FEW), measured(way, attempts)
            each = 1000 * (all_of_them.cpu_s - few.cpu_s) / (attempts - FEW)
            print(f"| {name} | {way} | {each:.0f} | {few.peak_mib:.0f} | {all_of_them.peak_mib:.0f} |", flush=True)
    print(f"fixed work: {fixed_work_s():.2f} CPU s")


if __name__ == "__main__":
    main()
