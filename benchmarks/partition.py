"""One partition of many turns: `python -m benchmarks.partition 100000 [--workers 2] [--catalog] [--at FOLDER]`.

Reported are wall time, CPU seconds with all children, the largest resident set of the process that runs the stages and
of each worker, and what was written. The responses of the model lie in a file, so that they do not count as memory.
With `--catalog` the store has that form, and an evaluation of a hundredth of the turns is published after the large
one. Give a folder on a disk with some 20 KiB of room a turn; by default a temporary one is used and removed.
"""

import argparse
import os
import sqlite3
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path

from benchmarks.costs import measured
from benchmarks.growth.check import dask
from benchmarks.load import disk_mib
from benchmarks.synthetic import write_suite

MODEL_VERSIONS = "model_versions:\n- {name: instant, provider: instant, concurrency: 64}\n"
LARGE, SMALL = "bench", "bench_small"


def prepare(place: Path, turns: int) -> None:
    """Writes a suite with that many turns and a small one, and the responses of a model."""
    (place / "data" / "suites").mkdir(parents=True)
    (place / "data" / "model_versions.yaml").write_text(MODEL_VERSIONS)
    with closing(sqlite3.connect(place / "responses.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE responses (turn TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID")
        for suite, number in ((LARGE, turns), (SMALL, turns // 100)):
            responses = write_suite(place / "data" / "suites" / suite, number)
            connection.executemany("INSERT INTO responses VALUES (?, ?)", responses.items())


def evaluate(place: Path, suite: str) -> None:
    """Evaluates a suite in a process of its own and prints what that took."""
    began, published = time.monotonic(), disk_mib(place / "home" / "catalog")
    cost = measured([sys.executable, "-m", "benchmarks.instant", "run", "--no-report", "--suite", suite])
    record = sum(path.stat().st_size for path in (place / "home" / "record").rglob(f"*suite={suite}/**/part.parquet"))
    added = disk_mib(place / "home" / "catalog") - published
    print(
        f"{suite}: {time.monotonic() - began:.0f} s, {cost.cpu_s:.1f} CPU s, peak {cost.peak_mib:.0f} MiB, wrote "
        f"{cost.written_mib:.0f} MiB; {record / 2**20:.1f} MiB in the record, {added:.1f} MiB more in a catalog, "
        f"{disk_mib(place / 'home'):.0f} MiB in the home, exit code {cost.code}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("turns", type=int)
    parser.add_argument("--at", type=Path, help="a folder that does not exist yet")
    parser.add_argument("--workers", type=int, default=0, help="workers of a Dask cluster on this machine")
    parser.add_argument("--catalog", action="store_true", help="the store is a catalog")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as services:
        place = chosen.at or Path(temporary, "bench")
        prepare(place, chosen.turns)
        os.environ |= {"EVAL_HOME": f"{place}/home", "EVAL_DATA": f"{place}/data"}
        os.environ |= {"EVAL_STORE": "catalog" if chosen.catalog else "file"}
        os.environ["EVAL_BENCH_RESPONSES"] = f"{place}/responses.sqlite"
        cluster = services.enter_context(dask(chosen.workers)) if chosen.workers else None
        if cluster:
            os.environ["EVAL_CLUSTER"] = cluster.address
        for suite in (LARGE, SMALL) if chosen.catalog else (LARGE,):
            evaluate(place, suite)
        if cluster:
            print("workers:", *(f"{cost.cpu_s:.1f} CPU s, peak {cost.peak_mib:.0f} MiB;" for cost in cluster.costs()))


if __name__ == "__main__":
    main()
