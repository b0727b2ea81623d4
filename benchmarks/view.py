"""The workbench on 100,000 turns: `python -m benchmarks.view [--turns 100000] [--keep FOLDER]`.

A real evaluation of a made-up suite by a model without latency, then the server as people start it, asked over HTTP. Of
each page the median and the worst of some requests, and the largest resident set of the server.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from urllib.parse import quote, urlencode

import httpx2

from benchmarks.costs import peak_mib
from benchmarks.load import FIRST, home, of_turns
from benchmarks.synthetic import TURNS_PER_CASE
from eval_pipeline.core.home import find_home

REPEATS = 15
TURN = "s0/page_{}#2"
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')


@contextmanager
def served() -> Iterator[tuple[str, int]]:
    """The workbench of the home; its address and its process."""
    command = [sys.executable, "-m", "benchmarks.instant", "view", "--no-token", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None
        try:
            yield found[0], process.pid
        finally:
            process.terminate()


def pages(turns: int) -> dict[str, list[str]]:
    """Addresses by what they are; several of each, so that none is answered from what is remembered."""
    of = {"model_version": "m0", "eval_date": str(FIRST)}
    cases = [turns // TURNS_PER_CASE * number // REPEATS for number in range(REPEATS)]

    def listed(**more: object) -> str:
        return f"/suites/s0/turns?{urlencode({**of, **more}, doseq=True)}"

    def after(number: int, value: object = None) -> str:
        return json.dumps([value, f"page_{number}", 1, 0])

    def turn(number: int, **more: str) -> str:
        return f"/suites/s0/turn?turn_id={quote(TURN.format(number), safe='')}&{urlencode({**of, **more})}"

    def beside(**more: object) -> str:
        both = f"versions=m0,m1&eval_dates={FIRST},{FIRST}"
        return f"/suites/s0/compare?{both}&{urlencode(more, doseq=True)}"

    def beyond(number: int) -> str:
        return json.dumps([70, "all-right", f"page_{number}", 1, 0])

    condition = {"column": "logic_f1", "is": "at_most"}
    return {
        "home": ["/"] * REPEATS,
        "turns, in the suite's order": [listed(after=after(number)) for number in cases],
        "turns, by tokens": [listed(sort="tokens", after=after(number, 900)) for number in cases],
        "turns, by the answer": [listed(sort="answer", after=after(number, "150")) for number in cases],
        "turns, by a metric": [listed(sort="logic_f1", order="desc", after=after(number, 0.5)) for number in cases],
        "turns, wrong ones of a metric": [listed(verdict="wrong", **condition, value=n / 20) for n in range(REPEATS)],
        "turns, full text, frequent": [listed(q=f"multiply {number}"[:8]) for number in cases],
        "turns, full text, rare": [listed(q=f"page_{number}#3") for number in cases],
        "a turn": [turn(number) for number in cases],
        "a turn among wrong ones by tokens": [turn(n, verdict="wrong", sort="tokens") for n in cases],
        "a turn in full text": [turn(number, q="multiply") for number in cases],
        "a turn of side by side": [turn(n, versions="m0,m1", eval_dates=f"{FIRST},{FIRST}") for n in cases],
        "side by side": [beside(after=beyond(number)) for number in cases],
        "side by side, full text": [beside(q=f"multiply {number}"[:8], after=beyond(number)) for number in cases],
    }


def review_pages(client: httpx2.Client) -> dict[str, list[str]]:
    """Addresses of pages of reviews, after a queue was drawn and some of its answers were reviewed."""
    started = time.perf_counter()
    drawn = client.post(
        "/suites/s0/queues", data={"by": "disagreement", "size": "300", "seed": "1"}, follow_redirects=True
    )
    print(f"  {'a queue of 300 drawn':<36} {1000 * (time.perf_counter() - started):7.0f} ms", flush=True)
    (queue, *_) = re.findall(r"queue=([0-9a-f]{12})", drawn.raise_for_status().text)
    taken = []
    for _ in range(REPEATS):
        turn = client.get("/suites/s0/queue", params={"queue": queue}, follow_redirects=True).raise_for_status().text
        fields = {name: unescape(value) for name, value in _HIDDEN.findall(turn)}
        started = time.perf_counter()
        said = {**fields, "verdict": "right", "who": "somebody"}
        client.post("/suites/s0/review", data=said, follow_redirects=False)
        taken.append(1000 * (time.perf_counter() - started))
    print(f"  {'a review said':<36} {statistics.median(taken):7.0f} ms, at most {max(taken):5.0f} ms", flush=True)
    return {
        "reviews": ["/suites/s0/reviews"] * REPEATS,
        "disputes": ["/suites/s0/disputes"] * REPEATS,
        "next answer of a queue": [f"/suites/s0/queue?queue={queue}"] * REPEATS,
    }


def _cpu_s(pid: int) -> float:
    """CPU seconds that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(turns: int) -> None:
    """Prints a line a page."""
    with (
        served() as (address, pid),
        httpx2.Client(base_url=address, timeout=120, headers={"Origin": address.rstrip("/")}) as client,
    ):
        _timed(client, pid, {"server ready to answer": ["/static/style.css"]})
        _timed(client, pid, {"home, first request": ["/"]})
        os.utime(find_home().store)  # as if it was published anew
        _timed(client, pid, {"home, first after a publication": ["/"]})
        _timed(client, pid, pages(turns))
        print(f"  {'largest resident set so far':<36} {peak_mib(pid):7.0f} MiB", flush=True)
        for form in ("csv", "parquet"):
            address = f"/suites/s0/turns.{form}?model_version=m0&eval_date={FIRST}"
            started = time.perf_counter()
            size = len(client.get(address).raise_for_status().content)
            print(f"  {f'all turns as {form}':<36} {1000 * (time.perf_counter() - started):7.0f} ms, {size >> 20} MiB")
        print(f"  {'largest resident set of all':<36} {peak_mib(pid):7.0f} MiB", flush=True)
        _timed(client, pid, review_pages(client))
        print(f"  {'largest, a queue drawn':<36} {peak_mib(pid):7.0f} MiB", flush=True)


def _timed(client: httpx2.Client, pid: int, found: dict[str, list[str]]) -> None:
    for name, addresses in found.items():
        taken, before = [], _cpu_s(pid)
        for one in addresses:
            started = time.perf_counter()
            answer = client.get(one)
            assert answer.is_success or answer.is_redirect, answer.text
            taken.append(1000 * (time.perf_counter() - started))
        median, worst = statistics.median(taken), max(taken)
        cpu = 1000 * (_cpu_s(pid) - before) / len(addresses)
        print(f"  {name:<36} {median:7.0f} ms, at most {worst:5.0f} ms, CPU {cpu:5.0f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, help="Folder of a home that is made where it is not there, and kept.")
    arguments = parser.parse_args()
    print(f"view, {arguments.turns:,} turns:", flush=True)
    if arguments.keep is None:
        with home() as place:
            of_turns(place, arguments.turns, versions=2)
            measure(arguments.turns)
        return
    place = arguments.keep.absolute()
    os.environ |= {"EVAL_HOME": f"{place}/home", "EVAL_DATA": f"{place}/data"}
    os.environ["EVAL_BENCH_RESPONSES"] = f"{place}/responses.json"
    if not place.exists():
        (place / "data" / "suites").mkdir(parents=True)
        of_turns(place, arguments.turns, versions=2)
    measure(arguments.turns)


if __name__ == "__main__":
    main()
