"""This checkout against another one: `python -m benchmarks.versus /path/to/other [--pairs 25] [--turns 10000]`.

Runs whole evaluations of both, one after the other in turn, so that the machine's speed concerns both alike. Reported
are the ratios of CPU seconds and peak memory, ours to the other's: median, mean of the logarithms, and the upper end of
its one-sided 95% interval. The other checkout has its own `.venv`. 0 turns is start-up; the first run of each is not
counted.
"""

import argparse
import json
import math
import statistics
import subprocess
from pathlib import Path

from scipy.stats import t

HERE = Path(__file__).resolve().parents[1]
MEASURE = (
    "import json; from benchmarks.pipeline import measure; "
    "found = measure({turns}); print(json.dumps([found.cpu_s, found.peak_mib]))"
)


def measured(checkout: Path, turns: int) -> tuple[float, float]:
    """CPU seconds and MiB of one evaluation."""
    command = [str(checkout / ".venv" / "bin" / "python"), "-c", MEASURE.format(turns=turns)]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
    cpu, peak = json.loads(done.stdout.splitlines()[-1])
    return cpu, peak


def told(name: str, ratios: list[float]) -> str:
    """Ratios in one line."""
    logs = [math.log(ratio) for ratio in ratios]
    mean, error = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
    upper = mean + error * t.ppf(0.95, len(logs) - 1)
    return (
        f"{name:<12} median {statistics.median(ratios):.3f}  mean {math.exp(mean):.3f}  upper 95% {math.exp(upper):.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--pairs", type=int, default=25)
    parser.add_argument("--turns", type=int, default=10_000)
    chosen = parser.parse_args()
    checkouts = (HERE, chosen.other.resolve())
    for checkout in checkouts:
        measured(checkout, chosen.turns)
    cpu, peak, ours_s, others_s = [], [], [], []
    for number in range(chosen.pairs):
        order = checkouts if number % 2 == 0 else checkouts[::-1]
        found = {checkout: measured(checkout, chosen.turns) for checkout in order}
        ours, others = found[HERE], found[checkouts[1]]
        cpu.append(ours[0] / others[0])
        peak.append(ours[1] / others[1])
        ours_s.append(ours[0])
        others_s.append(others[0])
        print(
            f"{number + 1:>3}  {ours[0]:.2f} s  {others[0]:.2f} s  {ours[1]:.0f} MiB  {others[1]:.0f} MiB", flush=True
        )
    medians = " against ".join(f"{statistics.median(found):.2f}" for found in (ours_s, others_s))
    print(f"{chosen.turns} turns, {chosen.pairs} pairs: {medians} CPU s")
    print(told("CPU", cpu))
    print(told("peak memory", peak))


if __name__ == "__main__":
    main()
