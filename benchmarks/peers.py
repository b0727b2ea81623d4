"""CPU a sample beside a peer's, on the same machine in the same minutes: `python -m benchmarks.peers [--repeats 3]`.

On a machine that others share, figures of different hours cannot be compared; ratios within one run can. The peer is
pydantic-evals, the lightest of those we know, installed by uv into its cache: one trivial evaluator, and nothing is
stored. Ours is a whole evaluation, from cases to published store, with every metric (`benchmarks.pipeline`).
"""

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.pipeline import measure

PEER = "pydantic-evals==2.62.0"
SIZES = 1_000, 10_000
_SCRIPT = """
import sys, time
from dataclasses import dataclass
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator

@dataclass
class Equal(Evaluator):
    def evaluate(self, ctx):
        return ctx.output == ctx.expected_output

async def task(text):
    return text

count = int(sys.argv[1])
cases = [Case(name=str(i), inputs=str(i), expected_output=str(i)) for i in range(count)]
Dataset(name="peer", cases=cases, evaluators=[Equal()]).evaluate_sync(task, progress=False, max_concurrency=64)
print(time.process_time())
"""


def peer_cpu_s(samples: int) -> float:
    """CPU seconds of the peer over that many samples, its start included."""
    uv = str(Path(sys.executable).with_name("uv"))  # where `make setup` puts it
    command = [uv, "run", "--quiet", "--no-project", "--with", PEER, "python", "-c", _SCRIPT, str(samples)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    small, large = SIZES
    pairs = []
    for _ in range(repeats):
        ours = measure(large).cpu_s - measure(small).cpu_s
        peer = peer_cpu_s(large) - peer_cpu_s(small)
        pairs.append((ours, peer))
    ours_ms, peer_ms = (statistics.median(pair[place] for pair in pairs) / (large - small) * 1000 for place in (0, 1))
    ratio = statistics.median(ours / peer for ours, peer in pairs)
    print(f"CPU a sample: ours {ours_ms:.3f} ms, {PEER} {peer_ms:.3f} ms, ratio {ratio:.2f} (medians of {repeats})")


if __name__ == "__main__":
    main()
