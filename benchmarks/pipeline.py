"""CPU and memory of a whole evaluation: `python -m benchmarks.pipeline [--repeats 3] [--sizes 1000,10000]`.

Runs `eval-pipeline run --no-report` in a process of its own, from cases to published store, with the journal on disk.
Reported are CPU seconds (user + system, all threads and children) in all, CPU a turn between the two sizes, and the
largest resident set. Start-up is what remains of the total at no turns. A shared machine's speed changes by the
hour: the CPU seconds of a fixed loop, taken in between, say how fast it was.
"""

import argparse
import compileall
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import eval_pipeline
from benchmarks.synthetic import write_suite

MODEL_VERSIONS = "model_versions:\n- {name: instant, provider: instant, concurrency: 64}\n"


@dataclass(frozen=True)
class Cost:
    cpu_s: float
    peak_mib: float


def measure(turns: int, profile: str | None = None) -> Cost:
    """One evaluation of that many turns in a new home."""
    with tempfile.TemporaryDirectory() as place:
        data, home = Path(place, "data"), Path(place, "home")
        responses = write_suite(data / "suites" / "bench", turns)
        Path(place, "responses.json").write_text(json.dumps(responses))
        (data / "model_versions.yaml").write_text(MODEL_VERSIONS)
        environment = os.environ | {"EVAL_HOME": str(home), "EVAL_DATA": str(data)}
        environment["EVAL_BENCH_RESPONSES"] = f"{place}/responses.json"
        profiling = ["-m", "cProfile", "-o", profile] if profile else []
        command = [sys.executable, *profiling, "-m", "benchmarks.instant"]
        command += ["run", "--suite", "bench", "--model-version", "instant", "--no-report"]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        _, status, usage = os.wait4(process.pid, 0)
        if os.waitstatus_to_exitcode(status) != 0:
            raise SystemExit(f"the evaluation failed: {process.stderr.read().decode()}")
        return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def fixed_work_s() -> float:
    """CPU seconds of a loop that never changes: how fast the machine is just now."""
    started = time.process_time()
    known: dict[str, int] = {}
    for number in range(400_000):
        known[str(number)] = number
    total = 0
    for number in range(1_500_000):
        total += number & 3
    for _ in range(20_000):
        json.dumps({"a": [1, 2, 3], "b": "xyz" * 10})
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sizes", default="1000,10000")
    parser.add_argument("--profile", help="write a cProfile of the largest size here, and measure nothing")
    arguments = parser.parse_args()
    small, large = (int(size) for size in arguments.sizes.split(","))
    # As `make setup` leaves it: else, where Python may not write bytecode, each process would compile the package anew.
    compileall.compile_dir(Path(eval_pipeline.__file__).parent, quiet=1)
    if arguments.profile:
        measure(large, arguments.profile)
        return
    runs, speeds = [], []
    for _ in range(arguments.repeats):
        runs.append((measure(small), measure(large)))
        speeds.append(fixed_work_s())
    for size, place in ((small, 0), (large, 1)):
        cpu = statistics.median(run[place].cpu_s for run in runs)
        peak = max(run[place].peak_mib for run in runs)
        print(f"{size:>7,} turns: {cpu:6.2f} CPU s, peak {peak:4.0f} MiB")
    slope = statistics.median((b.cpu_s - a.cpu_s) / (large - small) for a, b in runs)
    start = statistics.median(a.cpu_s - slope * small for a, _ in runs)
    print(f"between them: {slope * 1000:.3f} ms CPU a turn; start-up {start:.2f} CPU s")
    print(f"fixed work on this machine meanwhile: {statistics.median(speeds):.2f} CPU s")


if __name__ == "__main__":
    main()
