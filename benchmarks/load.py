"""Homes as they are after years: `python -m benchmarks.load [--scale 1] [turns] [partitions] [journal] [suites]`.

Of each command on each home: CPU seconds (with all children) and the largest resident set of its process; what the home
takes on the disk. Each home is made in two sizes, one a tenth of the other, to see what grows faster than it.
"""

import argparse
import json
import os
import resource
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import date, timedelta
from pathlib import Path

from benchmarks.costs import Cost, measured
from benchmarks.synthetic import TURNS_PER_CASE, write_suite
from eval_pipeline.asking.journal.rows import insert
from eval_pipeline.asking.journal.sqlite import SqliteJournal
from eval_pipeline.chain.evaluation import chain_of, evaluating, ingesting, stage_of
from eval_pipeline.chain.runner import run_chain
from eval_pipeline.core.home import find_home
from eval_pipeline.core.model import Partition
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline.workspace.workspace import Workspace

FIRST = date(2026, 1, 1)
START_UI = "import eval_pipeline.definitions as d; d.defs.get_repository_def()"
COMMANDS = {
    "run, all up to date": ("run", "--no-report", "--eval-date", "LAST"),
    "publish, nothing new": ("publish",),
    "publish --full": ("publish", "--full"),
    "query": ("query", "SELECT * FROM leaderboard('SUITE')"),
    "doctor": ("doctor",),
    "prune --dry-run": ("prune", "--keep", "1000000", "--dry-run"),
}


def cli(*arguments: str) -> Cost:
    return measured([sys.executable, "-m", "benchmarks.instant", *arguments])


def disk_mib(folder: Path) -> float:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file()) / 2**20


@contextmanager
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="eval-load-") as place:
        os.environ |= {"EVAL_HOME": f"{place}/home", "EVAL_DATA": f"{place}/data"}
        os.environ["EVAL_BENCH_RESPONSES"] = f"{place}/responses.json"
        Path(place, "data", "suites").mkdir(parents=True)
        yield Path(place)


def suites(place: Path, count: int, turns: int, versions: int = 1) -> None:
    """Suites and model versions that answer them at once."""
    responses: dict[str, str] = {}
    for number in range(count):
        responses |= write_suite(place / "data" / "suites" / f"s{number}", turns, seed=number)
    (place / "responses.json").write_text(json.dumps(responses))
    entries = [f"- {{name: m{n}, provider: instant, concurrency: 64, max_tokens: {n + 100}}}" for n in range(versions)]
    (place / "data" / "model_versions.yaml").write_text("\n".join(["model_versions:", *entries]))


def of_turns(place: Path, size: int, versions: int = 1) -> tuple[str, date]:
    """One suite with that many turns, evaluated once by each model version."""
    suites(place, 1, size, versions)
    shown("run", size, cli("run", "--no-report", "--eval-date", str(FIRST)))
    return "s0", FIRST


def of_partitions(place: Path, size: int) -> tuple[str, date]:
    """A small suite, ten model versions, and as many dates as make that many evaluations."""
    from benchmarks.instant import Instant
    from eval_pipeline.providers import registry

    suites(place, 1, TURNS_PER_CASE, versions=10)
    registry.PROVIDERS["instant"] = f"{Instant.__module__}:Instant"  # type: ignore[index]
    days = [FIRST + timedelta(days=day) for day in range(size // 10)]
    for day in days:
        for version in range(10):
            inputs = Inputs.of(Workspace(find_home()), Partition("s0", f"m{version}", day), run=RunContext(f"r{day}"))
            chain = chain_of(inputs.track)
            run_chain([s for s in (*ingesting(chain), *evaluating(chain)) if s.writes], inputs)
        run_chain([stage_of(inputs.track, "published")], inputs) if day == days[-1] else None
    cli("publish")
    shown("run of a new date", size, cli("run", "--no-report", "--eval-date", str(days[-1] + timedelta(days=1))))
    return "s0", days[-1] + timedelta(days=1)


def of_journal(place: Path, size: int) -> tuple[str, date]:
    """A journal with that many responses of other runs, and one small evaluation."""
    suites(place, 1, 400)
    cli("run", "--no-report", "--eval-date", str(FIRST))
    path = find_home().journal
    (body,) = sqlite3.connect(path).execute("SELECT body FROM responses LIMIT 1").fetchone()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for start in range(0, size, 50_000):
            connection.execute("BEGIN")
            rows = [(f"{number:064x}", body) for number in range(start, min(start + 50_000, size))]
            insert(connection, rows, 1_700_000_000)
            connection.execute("COMMIT")
    SqliteJournal(path).close()
    shown("run of a new date", size, cli("run", "--no-report", "--eval-date", str(FIRST + timedelta(days=1))))
    return "s0", FIRST + timedelta(days=1)


def of_suites(place: Path, size: int) -> tuple[str, date]:
    """That many small suites, evaluated once."""
    suites(place, size, TURNS_PER_CASE)
    shown("run", size, cli("run", "--no-report", "--eval-date", str(FIRST)))
    return "s0", FIRST


HOMES: dict[str, tuple[Callable[[Path, int], tuple[str, date]], int]] = {
    "turns": (of_turns, 200_000),
    "partitions": (of_partitions, 5_000),
    "journal": (of_journal, 5_000_000),
    "suites": (of_suites, 400),
}
before: dict[str, tuple[int, Cost]] = {}


def shown(name: str, size: int, cost: Cost) -> None:
    """Prints a line; with the growth against the smaller home where that was measured."""
    known = before.pop(name, None)
    grown = ""
    if known is None:
        before[name] = (size, cost)
    else:
        grown = f"; {cost.cpu_s / known[1].cpu_s:5.1f} times the CPU of {size / known[0]:.0f} times less"
    said = "" if cost.code == 0 else f" (exit {cost.code})"
    print(f"  {name:<22} {size:>9,}: {cost.cpu_s:8.2f} CPU s, peak {cost.peak_mib:6.0f} MiB{grown}{said}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("homes", nargs="*", default=list(HOMES), metavar="HOME", help=", ".join(HOMES))
    parser.add_argument("--scale", type=float, default=1.0)
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    for name in arguments.homes:
        make, size = HOMES[name]
        print(f"{name}:", flush=True)
        before.clear()
        for part in (int(size * arguments.scale) // 10, int(size * arguments.scale)):
            with home() as place:
                suite, last = make(place, part)
                for told, command in COMMANDS.items():
                    given = [word.replace("LAST", str(last)).replace("SUITE", suite) for word in command]
                    shown(told, part, cli(*given))
                shown("start of the UI's code", part, measured([sys.executable, "-c", START_UI]))
                print(f"  {'disk':<22} {part:>9,}: {disk_mib(place / 'home'):8.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
