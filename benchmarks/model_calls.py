"""Throughput of calls to a model behind an API: `python -m benchmarks.model_calls [--turns 640] [--concurrency 64]`.

A fake Anthropic server with a latency of one second runs in a process of its own; `eval-pipeline run` asks it with the
real SDK. Reported: the time from the first request to the last answer over the ideal one (turns · latency / calls in
flight), CPU a call beyond what importing the SDK and the same evaluation with every answer in the journal take, and the
largest resident set, until the generations are on record and at the end, with the store published. The server takes CPU
too: with one core for both, the ratio tells of the machine.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import IO, Any

from benchmarks.synthetic import write_suite

ANSWER = '{"plan": [{"tool": "extract", "value": 50, "source": "text"}]}'
COMMAND = "from eval_pipeline.cli import main; main()"


@dataclass(frozen=True)
class Cost:
    cpu_s: float
    wall_s: float
    peak_mib: float
    asking_mib: float
    """Until the generations are on record."""


@contextmanager
def fake_server(latency_s: float, refused: float = 0.0) -> Iterator[dict[str, str]]:
    command = [sys.executable, "-m", "eval_pipeline_tests.fakes.anthropic_server", str(latency_s), ANSWER, str(refused)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.stdin.close()


def write_home(place: Path, turns: int, concurrency: int, url: str) -> None:
    write_suite(place / "data" / "suites" / "bench", turns)
    entry = {"name": "remote", "provider": "anthropic", "model": "claude-fake-1", "concurrency": concurrency}
    entry |= {"max_tokens": 200, "options": {"base_url": url}, "price": {"input": 1, "output": 5}}
    (place / "data" / "model_versions.yaml").write_text(json.dumps({"model_versions": [entry]}))


def evaluate(place: Path, key: str, day: str) -> Cost:
    environment = os.environ | {"EVAL_HOME": f"{place}/home", "EVAL_DATA": f"{place}/data", "ANTHROPIC_API_KEY": key}
    arguments = ["run", "--suite", "bench", "--model-version", "remote", "--no-report", "--eval-date", day]
    arguments += ["--no-canary"]  # the server gives every question the same answer
    started, generations = perf_counter(), place / "home" / "record" / "generations"
    with tempfile.TemporaryFile() as said:
        process = start(said, COMMAND, *arguments, environment=environment)
        with watched(process.pid, lambda: any(generations.rglob(f"eval_date={day}/*.parquet"))) as asking:
            usage = ended(process, said)
    wall_s = perf_counter() - started
    return Cost(usage.ru_utime + usage.ru_stime, wall_s, usage.ru_maxrss / 1024, asking[-1])


@contextmanager
def watched(pid: int, until: Callable[[], bool]) -> Iterator[list[float]]:
    """Largest resident sets of a process up to now, in MiB, the last one just before something happened."""
    found, over = [0.0], Event()

    def watch() -> None:
        while not over.wait(0.02) and not until():
            with suppress(OSError, StopIteration):
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                found.append(next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")))

    thread = Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def cpu_of(code: str) -> float:
    with tempfile.TemporaryFile() as said:
        usage = ended(start(said, code, environment=dict(os.environ)), said)
    return usage.ru_utime + usage.ru_stime


def start(said: IO[bytes], code: str, *arguments: str, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=said)


def ended(process: subprocess.Popen[bytes], said: IO[bytes]) -> Any:
    """What the process took; what it said where it failed."""
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        said.seek(0)
        raise SystemExit(f"it failed: {said.read().decode()}")
    return usage


@dataclass(frozen=True)
class Calls:
    """What an evaluation with calls took, and the same answered by the journal."""

    asked: Cost
    journalled: Cost
    asking_s: float
    most_in_flight: int
    sdk_s: float
    a_call_ms: float
    """CPU of a call."""


def measured(turns: int, concurrency: int, latency_s: float) -> Calls:
    """Asks the fake server once for each turn."""
    with tempfile.TemporaryDirectory() as folder, fake_server(latency_s) as server:
        place = Path(folder)
        write_home(place, turns, concurrency, server["url"])
        asked = evaluate(place, server["key"], "2026-01-01")
        with urllib.request.urlopen(f"{server['url']}/_log") as reply:
            log: dict[str, Any] = json.load(reply)
        journalled = evaluate(place, server["key"], "2026-01-02")
    calls = [entry for entry in log["requests"] if entry["operation"] == "messages"]
    if len(calls) != turns or set(log["charged"].values()) != {1}:
        raise SystemExit(f"{len(calls)} calls for {turns} turns")
    took = max(entry["at"] + entry["took"] for entry in calls) - min(entry["at"] for entry in calls)
    sdk = cpu_of("import anthropic") - cpu_of("import httpx2, pydantic")
    a_call = 1000 * (asked.cpu_s - journalled.cpu_s - sdk) / turns
    return Calls(asked, journalled, took, log["most_in_flight"], sdk, a_call)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=640)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=1.0)
    arguments = parser.parse_args()
    found = measured(arguments.turns, arguments.concurrency, arguments.latency)
    asked, journalled, took = found.asked, found.journalled, found.asking_s
    ideal = arguments.turns * arguments.latency / arguments.concurrency
    print(f"{arguments.turns} turns, {arguments.concurrency} in flight, latency {arguments.latency:g} s")
    print(f"asking: {took:.2f} s, {took / ideal:.3f} times the ideal; most in flight: {found.most_in_flight}")
    print(f"whole run: {asked.wall_s:.2f} s, {asked.cpu_s:.2f} CPU s")
    print(f"largest resident set: {asked.asking_mib:.0f} MiB while asking, {asked.peak_mib:.0f} MiB at the end")
    print(f"answered by the journal: {journalled.cpu_s:.2f} CPU s; importing the SDK: {found.sdk_s:.2f} CPU s")
    print(f"so a call takes {found.a_call_ms:.2f} ms CPU")


if __name__ == "__main__":
    main()
