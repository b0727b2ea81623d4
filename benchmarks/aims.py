"""What is aimed at, and how far it is reached: `python -m benchmarks.aims [--repeats 5] [--only TEXT]`.

Prints a table with today's figure, the aim, and their ratio; a missed aim is said to be missed. CPU seconds and ratios
are medians over the repetitions. What takes minutes or needs a server is measured once.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import nan
from pathlib import Path

from benchmarks import equivalence, model_calls, reports, sandbox, store_forms, weight
from benchmarks.peers.__main__ import measure as measure_peer
from benchmarks.peers.harnesses import PEERS
from benchmarks.pipeline import fixed_work_s, measure

SMALL, LARGE = 1_000, 10_000
PEER = "pydantic-evals"


@dataclass(frozen=True)
class Figure:
    """One figure; smaller is better. `value` is None where it was not measured, and `note` says why."""

    what: str
    value: float | None
    aim: float
    unit: str
    note: str = ""


HEAD = "| what | today | aim | today / aim | |\n|---|---|---|---|---|"


def row(figure: Figure) -> str:
    """The figure as a row of a Markdown table."""
    aim = f"{figure.aim:g} {figure.unit}"
    if figure.value is None:
        cells = [figure.what, "not measured", aim, "", figure.note]
    else:
        ratio = figure.value / figure.aim
        verdict = "reached" if ratio <= 1 else "**missed**"
        today = f"{figure.value:.3g} {figure.unit}"
        cells = [figure.what, today, aim, f"{ratio:.2f}", "; ".join(filter(None, [verdict, figure.note]))]
    return f"| {' | '.join(cells)} |"


def whole_runs(repeats: int) -> Iterator[Figure]:
    """Whole evaluations, alone and beside the fastest of the other harnesses."""
    peer, place = next(peer for peer in PEERS if peer.package.startswith(PEER)), Path("tmp/peers").resolve()
    without = ""
    try:
        peer.install(place)
    except Exception as error:  # no network: ours can be measured all the same
        without = f"{PEER} could not be installed: {error}"
    runs, ratios = [], []
    for _ in range(repeats):
        small, large = measure(SMALL), measure(LARGE)
        runs.append((small, large))
        if not without:
            its = measure_peer(peer, place, LARGE).cpu_s - measure_peer(peer, place, SMALL).cpu_s
            ratios.append((large.cpu_s - small.cpu_s) / its)
    slope = statistics.median((large.cpu_s - small.cpu_s) / (LARGE - SMALL) for small, large in runs)
    peak = max(large.peak_mib for _, large in runs)
    growth = 1024 * (peak - max(small.peak_mib for small, _ in runs)) / (LARGE - SMALL)
    total = statistics.median(large.cpu_s for _, large in runs)
    yield Figure(
        f"CPU a turn, in those of {PEER}", statistics.median(ratios) if ratios else None, 1.0, "times", without
    )
    yield Figure(f"{LARGE:,} turns, all in all", total, 4.5, "CPU s", f"{slope * 1000:.2f} ms a turn")
    yield Figure(
        "start-up of `run` with something to do",
        statistics.median(s.cpu_s - slope * SMALL for s, _ in runs),
        1.5,
        "CPU s",
    )
    yield Figure(f"peak memory of {LARGE:,} turns", peak, 300, "MiB")
    yield Figure("growth a turn", growth, 2, "KiB")


def starts(repeats: int) -> Iterator[Figure]:
    """Commands that have nothing to do."""
    with reports.evaluated(4) as workspace:
        current = statistics.median(reports.run(workspace.home) for _ in range(repeats))
    yield Figure("start-up of `run`, up to date", current, 0.5, "CPU s")
    command = [sys.executable, "-c", "from eval_pipeline.cli import main; main()", "--help"]
    yield Figure("`--help`", statistics.median(reports.cpu_of(command) for _ in range(repeats)), 0.15, "CPU s")


def calls(_: int) -> Iterator[Figure]:
    """Calls through the Anthropic SDK to a server that answers after a second."""
    few, many = model_calls.measured(640, 64, 1.0), model_calls.measured(2560, 512, 1.0)
    yield Figure("a call through the Anthropic SDK, 64 in flight", few.a_call_ms, 2, "CPU ms")
    yield Figure("the same, 512 in flight", many.a_call_ms, 2, "CPU ms", "calls a second on a core: 1,000 / this")
    yield Figure("memory of a run of 640 turns over HTTP", few.asked.peak_mib, 260, "MiB")


def written(_: int) -> Iterator[Figure]:
    """All files of a report."""
    with reports.evaluated(LARGE) as workspace:
        taken = reports.write(workspace, workspace.home.root / "report")
    yield Figure(f"report of {LARGE:,} turns: page, charts, workbook, traces", sum(taken.values()), 6, "CPU s")


def snippets(_: int) -> Iterator[Figure]:
    """Small snippets of model-written code."""
    _tier, _wall, cpu = asyncio.run(sandbox.snippets())
    yield Figure("a snippet of the track pandas in the sandbox", cpu, 20, "CPU ms")


def pairs(_: int) -> Iterator[Figure]:
    """Pairs of SQL queries, every sixth of those of `benchmarks.equivalence`."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["EVAL_HOME"] = home  # the suite's databases are made there
        taken = equivalence.taken_by([pair for group in equivalence.groups() for pair in list(group)[::6]])
    for (what, rung), times in sorted(taken.items()):
        aim = 200 if what.startswith("duckdb") else 150 if rung == "agreed" else 20
        yield Figure(f"SQL pair: {what}, {rung}", statistics.median(times), aim, "CPU ms", f"{len(times)} pairs")


def published(_: int) -> Iterator[Figure]:
    """Publishing one more evaluation of 1,000 turns into a store of 40."""
    file, catalog = (store_forms.one_more(form, evaluations=40, turns=1000) for form in ("file", "catalog"))
    yield Figure("a run publishes: bytes written, in copies of the store", file.written / file.store, 1.1, "times")
    yield Figure("in the catalog form, in bytes of the evaluation", catalog.written / catalog.size, 2, "times")


def weights(_: int) -> Iterator[Figure]:
    """What a plain installation brings, and what it takes on the disk."""
    found = weight.weights()
    heaviest = ", ".join(f"{name} {size:.0f}" for name, size in [*found.items()][:8])
    yield Figure("plain installation", len(found), weight.PACKAGES, "packages")
    yield Figure("the same, on the disk", sum(found.values()), weight.MEGABYTES, "MB", heaviest)


def demo(_: int) -> Iterator[Figure]:
    """The shipped suites and model versions, as a newcomer runs them, once they are installed."""
    with tempfile.TemporaryDirectory() as home:
        yield _made("demo", 90, EVAL_HOME=home)


def tests(_: int) -> Iterator[Figure]:
    """The cheap tests and some from end to end, on all processors."""
    yield _made("test", 240)


def _made(target: str, aim: float, **settings: str) -> Figure:
    began = time.monotonic()
    done = subprocess.run(["make", target], env=os.environ | settings, stdout=subprocess.DEVNULL, check=False)
    note = "by the clock" + (f"; exit code {done.returncode}" if done.returncode else "")
    return Figure(f"`make {target}`", time.monotonic() - began, aim, "s", note)


MEASURES: dict[str, Callable[[int], Iterator[Figure]]] = {
    "runs": whole_runs,
    "starts": starts,
    "calls": calls,
    "reports": written,
    "snippets": snippets,
    "pairs": pairs,
    "published": published,
    "weights": weights,
    "demo": demo,
    "tests": tests,
}


def measured(name: str, repeats: int) -> Iterator[Figure]:
    """The figures of one kind; what fails must not hide the others."""
    try:
        yield from MEASURES[name](repeats)
    except SystemExit as error:
        yield Figure(name, None, nan, "", f"failed: {' '.join(str(error).split())}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", action="append", choices=list(MEASURES), help="repeat it for several (default: all)")
    chosen = parser.parse_args()
    before = fixed_work_s()
    print(HEAD)
    for name in chosen.only or MEASURES:
        for figure in measured(name, chosen.repeats):
            print(row(figure), flush=True)
    print(f"fixed work on this machine: {before:.2f} CPU s before, {fixed_work_s():.2f} after")


if __name__ == "__main__":
    main()
