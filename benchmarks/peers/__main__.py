"""CPU a sample beside other harnesses: `python -m benchmarks.peers [--repeats 3] [--sizes 1000,10000] [--only NAME]`.

On a machine that others share, figures of different hours cannot be compared; ratios within one run can. Each peer is
installed apart (`--place`, by uv or npm) and evaluates the same samples, of which a third is wrong, with one trivial
scorer (two also with twenty, and one also storing) and a model that answers at once; that it counts as many right as
there are is checked. Ours are whole evaluations, from cases to published store: of the same samples with one scorer
(track text), and of questions on pages of 5 KB with every metric (track finqa), like twenty scorers that store. CPU is
user and system time of all processes; "a sample" is the difference between the two sizes, so that start-up is apart.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.harnesses import PEERS, Peer
from benchmarks.pipeline import Cost, fixed_work_s
from benchmarks.pipeline import measure as measure_ours
from benchmarks.synthetic import samples, write_suite
from benchmarks.synthetic import write_samples as write_same

OURS_STORES = "journal with fsync, Parquet, DuckDB, statistics"
OURS = {
    Peer("ours, the same samples", OURS_STORES, scorers=1): write_same,
    Peer("ours, pages", OURS_STORES, scorers=23): write_suite,
}
"""Ours → what writes its suite."""


@dataclass(frozen=True)
class Row:
    """One repetition: CPU seconds and peak memory at the two sizes."""

    small: Cost
    large: Cost


def write_samples(file: Path, count: int) -> int:
    """That many samples as JSON lines; returns how many of them are answered right."""
    found = samples(count)
    file.write_text("\n".join(map(json.dumps, found)) + "\n")
    return sum(one["answer"] == one["expected"] for one in found)


def measure(peer: Peer, place: Path, count: int) -> Cost:
    """One evaluation by a peer or by ours, in a process and a folder of its own.

    Raises:
        SystemExit: it failed, or counted otherwise.
    """
    if peer in OURS:
        return measure_ours(count, write=OURS[peer])
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        file = folder / "samples.jsonl"
        right = write_samples(file, count)
        with (folder / "output").open("w+") as output, (folder / "errors").open("w+") as errors:
            command, environment = peer.command(place, file, folder), peer.environment(folder)
            process = subprocess.Popen(command, env=environment, cwd=folder, stdout=output, stderr=errors)
            _, status, usage = os.wait4(process.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code not in (0, 100):  # promptfoo's code where a sample is wrong
            raise SystemExit(f"{peer.package} failed with {code}: {(folder / 'errors').read_text()[-2000:]}")
        counted = peer.right((folder / "output").read_text(), folder)
        if counted != right:
            raise SystemExit(f"{peer.package} counts {counted} of {count} right, expected {right}")
        return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def table(rows: dict[Peer, list[Row]], sizes: tuple[int, int]) -> str:
    """Markdown: CPU a sample, start-up, memory, and the medians of the ratios to ours within a repetition.

    Args:
        rows: the repetitions of every harness in the same order.
        sizes: samples of the two runs of a repetition.
    """
    small, large = sizes
    lines = [
        "| harness | scorers | CPU a sample | ours: the same samples, pages | start-up | peak memory | it stores |",
        "|---|---|---|---|---|---|---|",
    ]
    slopes = {peer: [(row.large.cpu_s - row.small.cpu_s) / (large - small) for row in rows[peer]] for peer in rows}
    for peer, repeats in rows.items():
        slope = statistics.median(slopes[peer])
        ratios = (zip(slopes[ours], slopes[peer], strict=True) for ours in OURS)
        taken = (statistics.median(our / its for our, its in pairs) for pairs in ratios)
        start = statistics.median(row.small.cpu_s for row in repeats) - slope * small
        peak = max(row.large.peak_mib for row in repeats)
        cells = (
            peer.package,
            str(peer.scorers),
            f"{slope * 1000:.2f} ms",
            ", ".join(f"{ratio:.2f}" for ratio in taken),
            f"{start:.1f} s",
            f"{peak:.0f} MiB",
            peer.stores,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sizes", default="1000,10000")
    parser.add_argument("--only", action="append", help="a peer's name; repeat it for several (default: all)")
    parser.add_argument("--place", type=Path, default=Path("tmp/peers"), help="where the peers are installed")
    arguments = parser.parse_args()
    small, large = (int(size) for size in arguments.sizes.split(","))
    peers = [peer for peer in PEERS if not arguments.only or peer.name in arguments.only]
    place = arguments.place.resolve()
    for peer in peers:
        peer.install(place)
    rows: dict[Peer, list[Row]] = {peer: [] for peer in (*OURS, *peers)}
    for _ in range(arguments.repeats):
        for peer, repeats in rows.items():
            repeats.append(Row(measure(peer, place, small), measure(peer, place, large)))
        print(f"fixed work meanwhile: {fixed_work_s():.2f} CPU s", flush=True)
    print(table(rows, (small, large)))


if __name__ == "__main__":
    main()
