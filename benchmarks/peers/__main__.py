"""CPU a sample beside other harnesses: `python -m benchmarks.peers [--repeats 3] [--sizes 1000,10000] [--only NAME]`.

On a machine that others share, figures of different hours cannot be compared; ratios within one run can. Each peer is
installed apart (`--place`, by uv or npm) and evaluates the same samples, of which a third is wrong, with one trivial
scorer (two also with twenty, and one also storing) and a model that answers at once; that it counts as many right as
there are is checked. Ours is a whole evaluation, from cases to published store, with every metric
(`benchmarks.pipeline`): it is like twenty scorers that store. CPU is user and system time of
all processes; "a sample" is the difference between the two sizes, so that start-up is apart.
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

OURS = "eval_pipeline"
OUR_SCORERS = 23
OURS_STORES = "journal with fsync, Parquet, DuckDB, statistics"


@dataclass(frozen=True)
class Row:
    """One repetition: CPU seconds and peak memory at the two sizes."""

    small: Cost
    large: Cost


def write_samples(file: Path, count: int) -> int:
    """That many samples as JSON lines; returns how many of them are answered right."""
    lines, right = [], 0
    for number in range(count):
        expected = f"{number * 7 % 100_003}"
        answer = expected if number % 3 else f"{expected}0"
        right += answer == expected
        question = f"What is item {number} worth, in thousands of dollars?"
        lines.append(json.dumps({"id": str(number), "input": question, "expected": expected, "answer": answer}))
    file.write_text("\n".join(lines) + "\n")
    return right


def measure(peer: Peer, place: Path, count: int) -> Cost:
    """One evaluation by a peer, in a process and a folder of its own.

    Raises:
        SystemExit: it failed, or counted otherwise.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        samples = folder / "samples.jsonl"
        right = write_samples(samples, count)
        with (folder / "output").open("w+") as output, (folder / "errors").open("w+") as errors:
            command, environment = peer.command(place, samples, folder), peer.environment(folder)
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
    """Markdown: CPU a sample, start-up, memory, and the median of the ratios to ours within a repetition.

    Args:
        rows: the repetitions of every harness, ours first, in the same order.
        sizes: samples of the two runs of a repetition.
    """
    small, large = sizes
    lines = [
        "| harness | scorers | CPU a sample | ours takes | start-up | peak memory | it stores |",
        "|---|---|---|---|---|---|---|",
    ]
    slopes = {peer: [(row.large.cpu_s - row.small.cpu_s) / (large - small) for row in rows[peer]] for peer in rows}
    own = next(iter(slopes.values()))
    for peer, repeats in rows.items():
        slope = statistics.median(slopes[peer])
        ratio = statistics.median(ours / its for ours, its in zip(own, slopes[peer], strict=True))
        start = statistics.median(row.small.cpu_s for row in repeats) - slope * small
        peak = max(row.large.peak_mib for row in repeats)
        cells = (
            peer.package,
            str(peer.scorers),
            f"{slope * 1000:.2f} ms",
            f"{ratio:.2f} times",
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
    ours = Peer(OURS, OURS_STORES, scorers=OUR_SCORERS)
    rows: dict[Peer, list[Row]] = {ours: [], **{peer: [] for peer in peers}}
    for _ in range(arguments.repeats):
        rows[ours].append(Row(measure_ours(small), measure_ours(large)))
        for peer in peers:
            rows[peer].append(Row(measure(peer, place, small), measure(peer, place, large)))
        print(f"fixed work meanwhile: {fixed_work_s():.2f} CPU s", flush=True)
    print(table(rows, (small, large)))


if __name__ == "__main__":
    main()
