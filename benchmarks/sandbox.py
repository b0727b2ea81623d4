"""What a snippet costs in the Python sandbox, beside a fresh interpreter with pandas in the same run.

Run as `python -m benchmarks.sandbox`. Wall time is what an idle machine is needed for; CPU time is told too.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import psutil

from eval_pipeline.sandbox.python_sandbox import PythonSandbox
from eval_pipeline.sandbox.returned.outcomes import SnippetRan

SNIPPETS, FRESH, GROUP_BYS, ROWS = 100, 5, 200, 20_000
_FRESH = "import pandas as pd\nresult = pd.DataFrame({'a': [1, 2]}).a.sum()"
_GROUP_BY = "result = df.groupby(['region', 'product']).agg(total=('amount', 'sum'), mean=('amount', 'mean'))"


def fresh_processes() -> tuple[float, float]:
    """Median wall and CPU milliseconds of an interpreter that imports pandas for one snippet."""
    walls, before = [], os.times()
    for _ in range(FRESH):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", _FRESH], check=True)
        walls.append(time.perf_counter() - began)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return 1000 * statistics.median(walls), 1000 * used / FRESH


def used_by_zygotes() -> float:
    """CPU seconds of this process's children and of what they waited for."""
    used = 0.0
    for process in psutil.Process().children(recursive=True):
        times = process.cpu_times()
        used += times.user + times.system + times.children_user + times.children_system
    return used


async def snippets() -> tuple[str, float, float]:
    """Tier, and median wall and mean CPU milliseconds of a small snippet."""
    async with PythonSandbox(zygotes=1) as box:
        await box.run("result = 1")
        walls, before = [], used_by_zygotes()
        for number in range(SNIPPETS):
            began = time.perf_counter()
            outcome = await box.run(f"result = pd.DataFrame({{'a': [1, {number}]}}).a.sum()")
            walls.append(time.perf_counter() - began)
            assert isinstance(outcome, SnippetRan), outcome
        return box.tier, 1000 * statistics.median(walls), 1000 * (used_by_zygotes() - before) / SNIPPETS


async def group_bys(path: Path) -> tuple[float, float]:
    """Wall and CPU seconds of many group-bys on every core, starting the zygotes included."""
    began = time.perf_counter()
    async with PythonSandbox() as box:
        outcomes = await asyncio.gather(*(box.run(_GROUP_BY, {"sales": path}) for _ in range(GROUP_BYS)))
        assert all(isinstance(outcome, SnippetRan) for outcome in outcomes)
        return time.perf_counter() - began, used_by_zygotes()


def main() -> None:
    """Prints the figures."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "region": rng.choice(["north", "south", "east", "west"], ROWS),
            "product": rng.choice([f"p{number}" for number in range(20)], ROWS),
            "amount": rng.normal(100, 10, ROWS),
        }
    )
    fresh_wall, fresh_cpu = fresh_processes()
    tier, wall, cpu = asyncio.run(snippets())
    path = Path("/tmp") / f"benchmark-sales-{os.getpid()}.parquet"
    frame.to_parquet(path)
    try:
        many_wall, many_cpu = asyncio.run(group_bys(path))
    finally:
        path.unlink()
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    print(f"tier {tier}; load of the machine {load:.1f} processes a core")
    print(f"a fresh interpreter with pandas: median {fresh_wall:.0f} ms, CPU {fresh_cpu:.0f} ms")
    print(f"a snippet in the sandbox:        median {wall:.1f} ms, CPU {cpu:.1f} ms")
    print(f"ratio: wall {fresh_wall / wall:.0f}, CPU {fresh_cpu / cpu:.0f}")
    print(f"{GROUP_BYS} group-bys of {ROWS:,} rows on {len(os.sched_getaffinity(0))} cores:", end=" ")
    print(f"{many_wall:.1f} s, CPU {many_cpu:.1f} s")


if __name__ == "__main__":
    main()
