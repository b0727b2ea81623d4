"""CPU and memory of a whole evaluation: `python -m benchmarks.pipeline [--repeats 3] [--sizes 1000,10000]`.

`--against COMMIT [--pairs 25] [--sizes 4,10000]` compares with another state of the source instead: each size, and the
small one once more when all is up to date, in alternated pairs; reported are the medians of the ratios. With
`--nights sql_sample,bench` it compares nights, with reports, on which nothing has changed since the one before, of
suites that come along by `simulated-weak`, or of the largest size (`bench`). With `--samples` the turns are those that
`benchmarks.peers` gives to others, with one scorer (track text), in place of questions on pages (finqa).

Runs `eval-pipeline run --no-report` in a process of its own, from cases to published store, with the journal on disk.
Reported are CPU seconds (user + system, all threads and children) in all, CPU a turn between the two sizes, and the
largest resident set. Start-up is what remains of the total at no turns. A shared machine's speed changes by the
hour: the CPU seconds of a fixed loop, taken in between, say how fast it was.
"""

import argparse
import compileall
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import eval_pipeline
from benchmarks.synthetic import write_samples, write_suite

ROOT = Path(__file__).resolve().parents[1]
_ONCE = ("--suite", "bench", "--model-version", "instant", "--no-report", "--eval-date", "2026-01-15")
MODEL_VERSIONS = "model_versions:\n- {name: instant, provider: instant, concurrency: 64}\n"


Write = Callable[[Path, int], dict[str, str]]
"""Writes a suite of so many turns into a folder; returns the responses by turn id."""


@dataclass(frozen=True)
class Cost:
    cpu_s: float
    peak_mib: float


def measure(turns: int, profile: str | None = None, write: Write = write_suite) -> Cost:
    """One evaluation of that many turns in a new home."""
    with tempfile.TemporaryDirectory() as place:
        write_data(Path(place), turns, write)
        return run(Path(place), Path("home"), profile=profile)


def write_data(place: Path, turns: int, write: Write = write_suite) -> None:
    """Writes a suite of that many turns, and what the model answers."""
    responses = write(place / "data" / "suites" / "bench", turns)
    (place / "responses.json").write_text(json.dumps(responses))
    (place / "data" / "model_versions.yaml").write_text(MODEL_VERSIONS)


def run(
    place: Path,
    home: Path,
    *,
    source: Path = ROOT,
    profile: str | None = None,
    data: Path | None = None,
    arguments: Sequence[str] = _ONCE,
) -> Cost:
    """One run of the command, by the code below `source`, in a home below `place`."""
    environment = os.environ | {"EVAL_HOME": str(place / home), "EVAL_DATA": str(data or place / "data")}
    environment |= {"EVAL_BENCH_RESPONSES": f"{place}/responses.json", "PYTHONPATH": str(source)}
    profiling = ["-m", "cProfile", "-o", os.path.abspath(profile)] if profile else []
    command = [sys.executable, *profiling, "-m", "benchmarks.instant"]
    command += ["run", *arguments]
    process = subprocess.Popen(command, env=environment, cwd=source, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"the evaluation failed: {process.stderr.read().decode()}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


@contextmanager
def _sources(commit: str) -> Iterator[Mapping[str, Path]]:
    """Yields where the source of a commit and today's are."""
    with tempfile.TemporaryDirectory() as aside:
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", aside], input=archive, check=True)
        sources = {"before": Path(aside), "now": ROOT}
        for source in sources.values():
            compileall.compile_dir(source / "eval_pipeline", quiet=1)
        yield sources


def compare_nights(commit: str, pairs: int, suites: Sequence[str], turns: int, write: Write) -> None:
    """Prints the same of nights, from the third on, on which nothing has changed."""
    with _sources(commit) as sources:
        for suite in suites:
            with tempfile.TemporaryDirectory() as place:
                if suite == "bench":
                    write_data(Path(place), turns, write)
                costs = [_night(Path(place), suite, number, sources) for number in range(pairs + 2)]
                print(f"nights of {suite}: {_ratios(costs[2:])}", flush=True)


def _night(place: Path, suite: str, number: int, sources: Mapping[str, Path]) -> dict[str, Cost]:
    """One night of each source, in random order."""
    version = "instant" if suite == "bench" else "simulated-weak"
    day = (date(2026, 1, 15) + timedelta(days=number)).isoformat()
    arguments = ("--suite", suite, "--model-version", version, "--eval-date", day)
    found = {}
    for name in random.sample(list(sources), len(sources)):
        data = place / "data" if suite == "bench" else sources[name] / "data"
        found[name] = run(place, Path(name), source=sources[name], data=data, arguments=arguments)
    return found


def compare(commit: str, pairs: int, sizes: Sequence[int], write: Write) -> None:
    """Prints the medians of the ratios to another commit's CPU seconds and peak memory."""
    with _sources(commit) as sources:
        for turns in sizes:
            with tempfile.TemporaryDirectory() as place:
                write_data(Path(place), turns, write)
                for name, source in sources.items():
                    run(Path(place), Path("first", name), source=source)  # what is kept beside the code is made
                costs = [_pair(Path(place), f"run{number}", sources) for number in range(pairs)]
                print(f"{turns:>7,} turns: {_ratios(costs)}", flush=True)
                if turns == min(sizes):
                    costs = [_pair(Path(place), "first", sources) for _ in range(pairs)]
                    print(f"   up to date: {_ratios(costs)}", flush=True)


def _pair(place: Path, home: str, sources: Mapping[str, Path]) -> dict[str, Cost]:
    """One run of each source, in random order, each in a home of its own."""
    names = random.sample(list(sources), len(sources))
    return {name: run(place, Path(home, name), source=sources[name]) for name in names}


def _ratios(costs: Sequence[Mapping[str, Cost]]) -> str:
    cpu = statistics.median(one["now"].cpu_s / one["before"].cpu_s for one in costs)
    peak = statistics.median(one["now"].peak_mib / one["before"].peak_mib for one in costs)
    was, now = (statistics.median(one[name].cpu_s for one in costs) for name in ("before", "now"))
    return f"{cpu:.2f} times the CPU ({was:.2f} → {now:.2f} s), {peak:.2f} times the memory, {len(costs)} pairs"


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
    parser.add_argument("--against", metavar="COMMIT", help="compare with this state of the source")
    parser.add_argument("--pairs", type=int, default=25)
    parser.add_argument("--nights", metavar="SUITES", help="with --against: compare unchanged nights of these suites")
    parser.add_argument("--profile", help="write a cProfile of the largest size here, and measure nothing")
    parser.add_argument("--samples", action="store_true", help="turns with one scorer, as peers evaluate them")
    arguments = parser.parse_args()
    write = write_samples if arguments.samples else write_suite
    sizes = [int(size) for size in arguments.sizes.split(",")]
    if arguments.against and arguments.nights:
        compare_nights(arguments.against, arguments.pairs, arguments.nights.split(","), max(sizes), write)
        return
    if arguments.against:
        compare(arguments.against, arguments.pairs, sizes, write)
        return
    small, large = sizes
    # As `make setup` leaves it: else, where Python may not write bytecode, each process would compile the package anew.
    compileall.compile_dir(Path(eval_pipeline.__file__).parent, quiet=1)
    if arguments.profile:
        measure(large, arguments.profile, write)
        return
    runs, speeds = [], []
    for _ in range(arguments.repeats):
        runs.append((measure(small, write=write), measure(large, write=write)))
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
