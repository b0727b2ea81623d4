"""One partition of many turns: `python -m benchmarks.partition 100000 [--at FOLDER]`.

Reported are wall time, CPU seconds with all children, the largest resident set of the process that runs the stages, and
what was written to disk. The responses of the model lie in a file, so that they do not count as memory. Give a folder
on a disk with some 20 KiB of room a turn; by default a temporary one is used and removed.
"""

import argparse
import os
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from benchmarks.load import disk_mib, measured
from benchmarks.synthetic import write_suite

MODEL_VERSIONS = "model_versions:\n- {name: instant, provider: instant, concurrency: 64}\n"


def prepare(place: Path, turns: int) -> None:
    """Writes a suite with that many turns, and the responses of a model."""
    (place / "data" / "suites").mkdir(parents=True)
    responses = write_suite(place / "data" / "suites" / "bench", turns)
    (place / "data" / "model_versions.yaml").write_text(MODEL_VERSIONS)
    with closing(sqlite3.connect(place / "responses.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE responses (turn TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID")
        connection.executemany("INSERT INTO responses VALUES (?, ?)", responses.items())


def evaluate(place: Path, turns: int) -> None:
    """Evaluates the suite in a process of its own and prints what that took."""
    os.environ |= {"EVAL_HOME": f"{place}/home", "EVAL_DATA": f"{place}/data"}
    os.environ["EVAL_BENCH_RESPONSES"] = f"{place}/responses.sqlite"
    started = time.monotonic()
    cost = measured([sys.executable, "-m", "benchmarks.instant", "run", "--no-report"])
    print(
        f"{turns:,} turns: {time.monotonic() - started:.0f} s, {cost.cpu_s:.1f} CPU s, peak {cost.peak_mib:.0f} MiB, "
        f"{disk_mib(place / 'home'):.0f} MiB in the home, exit code {cost.code}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("turns", type=int)
    parser.add_argument("--at", type=Path, help="a folder that does not exist yet")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = chosen.at or Path(temporary, "bench")
        prepare(place, chosen.turns)
        evaluate(place, chosen.turns)


if __name__ == "__main__":
    main()
