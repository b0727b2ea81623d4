"""What it costs a run to be watched: `python -m benchmarks.watching [--turns 2000] [--concurrency 24] [--latency 1]
[--refused 0.05]`.

`eval-pipeline run` asks a fake Anthropic server with the real SDK. In its process, the CPU time of the asking thread is
taken before and after each call of what exists only for those who watch: counting answers, scoring some of them, the
status once a second, looking for the wish to end. Reported: that time over user and system time of the whole run.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.model_calls import fake_server, write_home


def timed(owner: type, name: str, taken: dict[str, list[float]], depth: list[int]) -> None:
    """Adds up the CPU time of a method; what it calls of the others is not counted twice."""
    method: Callable[..., Any] = getattr(owner, name)
    of = taken.setdefault(f"{owner.__name__}.{name}", [0.0, 0])

    def called(*arguments: Any, **named: Any) -> Any:
        began = time.thread_time()
        depth[0] += 1
        try:
            return method(*arguments, **named)
        finally:
            depth[0] -= 1
            if not depth[0]:
                of[0] += time.thread_time() - began
                of[1] += 1

    setattr(owner, name, called)


def child(told: Path, arguments: list[str]) -> None:
    """Runs the command with what is measured."""
    from eval_pipeline.cli.app import command_line
    from eval_pipeline.stages.attempts.so_far import SoFar
    from eval_pipeline.workspace.watching.watch import Watch

    taken, depth = dict[str, list[float]](), [0]
    for owner, name in ((SoFar, "add"), (Watch, "beat"), (Watch, "step"), (Watch, "_write"), (Watch, "end")):
        timed(owner, name, taken, depth)
    sys.argv = ["eval-pipeline", *arguments]
    if command_line():
        raise SystemExit("it failed")
    times = os.times()
    told.write_text(json.dumps({"watching": taken, "cpu_s": times.user + times.system}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=24)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--refused", type=float, default=0.05)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, fake_server(given.latency, given.refused) as server:
        place, told = Path(folder), Path(folder) / "told.json"
        write_home(place, given.turns, given.concurrency, server["url"])
        environment = os.environ | {"EVAL_HOME": f"{place}/home", "EVAL_DATA": f"{place}/data"}
        environment["ANTHROPIC_API_KEY"] = server["key"]
        run = ["run", "--suite", "bench", "--model-version", "remote", "--no-report", "--no-canary", "--watch"]
        code = (
            f"from pathlib import Path; from benchmarks import watching; watching.child(Path({str(told)!r}), {run!r})"
        )
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], env=environment, check=True, stdout=subprocess.DEVNULL)
        found = json.loads(told.read_text())
    print(
        f"{given.turns} turns, {given.concurrency} in flight, latency {given.latency:g} s, {given.refused:.0%} refused"
    )
    print(f"whole run: {time.perf_counter() - began:.1f} s, {found['cpu_s']:.2f} CPU s")
    for name, (seconds, calls) in found["watching"].items():
        print(f"{name}: {1000 * seconds:.1f} ms in {calls:.0f} calls")
    share = sum(seconds for seconds, _ in found["watching"].values()) / found["cpu_s"]
    print(f"being watched: {share:.2%} of the CPU")


if __name__ == "__main__":
    main()
