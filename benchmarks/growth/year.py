"""What nights leave on the disk: `python -m benchmarks.growth --nights 30 --keep 10`.

Four small suites that come along, cut to a few cases, and five stand-ins, asked anew each night by the command `run`,
of which Dagster is told. After each tenth night: bytes by part, without reports. Then `prune` keeps the newest dates,
and the home is compared with what it was after so many nights.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from pathlib import Path

import yaml

SHIPPED = Path(__file__).parents[2] / "data"
SUITES = ("finqa_sample", "invoices_sample", "sdmx_sample", "tickets_sample")
CASES = 4
"""Of each suite; what a night leaves that does not depend on them is most of it."""
VERSIONS = 5
FIRST = date(2026, 1, 1)
STEP = 10


def part_of(path: Path) -> str:
    """Returns which part of a home a file below it belongs to."""
    first, *more = path.parts
    if first == "dagster" and more[:2] == ["history", "runs"]:
        return "dagster: index of events" if path.stem == "index" else "dagster: events of runs"
    return "dagster: runs, schedules, logs" if first == "dagster" else first.split(".")[0]


def sizes(home: Path) -> Mapping[str, int]:
    """Bytes that the parts of a home take on the disk."""
    found: Counter[str] = Counter()
    for path in home.rglob("*"):
        if path.is_file():
            found[part_of(path.relative_to(home))] += path.stat().st_blocks * 512
    return found


@contextmanager
def site() -> Iterator[Path]:
    """A project with the suites and model versions, and an empty home; gone after the block."""
    with tempfile.TemporaryDirectory(prefix="eval-year-") as folder:
        place = Path(folder)
        for suite in SUITES:
            target = place / "data" / "suites" / suite
            shutil.copytree(SHIPPED / "suites" / suite, target)
            left = CASES
            for file in sorted((target / "cases").iterdir()):
                cases = yaml.safe_load(file.read_text())
                if isinstance(cases, list):
                    file.write_text(yaml.safe_dump(cases[:left]))
                elif left <= 0:
                    file.unlink()
                left -= len(cases) if isinstance(cases, list) else 1
        entries = yaml.safe_load((SHIPPED / "model_versions.yaml").read_text())["model_versions"]
        strong = next(entry for entry in entries if entry["name"] == "simulated-strong")
        made = [
            {**strong, "name": f"m{number}", "options": {**strong["options"], "seed": number}}
            for number in range(VERSIONS)
        ]
        (place / "data" / "model_versions.yaml").write_text(yaml.safe_dump({"model_versions": made}))
        yield place


def child(place: Path, *arguments: str) -> None:
    """Runs Python on the place, in a process of its own. Raises if it fails."""
    environment = os.environ | {"EVAL_HOME": str(place / "home"), "EVAL_DATA": str(place / "data")}
    subprocess.run([sys.executable, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)


def run_nights(numbers: Sequence[int]) -> None:
    """Runs nights in this process, and tells Dagster of what it has not run itself."""
    from unittest.mock import patch

    from typer.testing import CliRunner

    from eval_pipeline.cli.app import app
    from eval_pipeline.core.home import find_home
    from eval_pipeline.defs.running.told.telling import tell
    from eval_pipeline.workspace.noting import commands

    for number in numbers:
        day = FIRST + timedelta(days=number)
        at = datetime.combine(day, time(2)).isoformat()
        with patch.object(commands, "stamp", lambda at=at: at):  # of which Dagster is told
            done = CliRunner().invoke(app, ["run", "--eval-date", str(day), "--fresh", "--no-report"])
        if done.exit_code not in {0, 1}:  # 1: a significant loss, which chance brings
            raise RuntimeError(done.output)
        while tell(find_home()):
            pass


def leave(nights: int, keep: int) -> None:
    """Prints bytes by part after each tenth night, and what `prune --keep KEEP` leaves of them."""
    with site() as place:
        told: list[tuple[str, Mapping[str, int]]] = []
        for start in range(0, nights, STEP):
            began = sum(os.times()[2:4])
            count = min(STEP, nights - start)
            child(place, "-m", "benchmarks.growth.year", str(start), str(count))
            cpu = (sum(os.times()[2:4]) - began) / count
            told.append((f"{start + count} nights", sizes(place / "home")))
            print(f"{start + count} nights: {cpu:.1f} CPU s a night", file=sys.stderr, flush=True)
        began = sum(os.times()[2:4])
        child(place, "-c", "from eval_pipeline.cli import main; main()", "prune", "--keep", str(keep))
        print(f"prune: {sum(os.times()[2:4]) - began:.1f} CPU s", file=sys.stderr, flush=True)
        told.append((f"pruned to {keep}", sizes(place / "home")))
    show(told)


def show(told: Sequence[tuple[str, Mapping[str, int]]]) -> None:
    """Prints a table of MiB with a row for each part."""
    parts = sorted({part for _, found in told for part in found})
    print("| MiB |" + "".join(f" {name} |" for name, _ in told))
    print("|---|" + "---|" * len(told))
    for part in parts:
        print(f"| {part} |" + "".join(f" {found.get(part, 0) / 2**20:.1f} |" for _, found in told))
    print("| all |" + "".join(f" {sum(found.values()) / 2**20:.1f} |" for _, found in told))


if __name__ == "__main__":
    run_nights(range(int(sys.argv[1]), int(sys.argv[1]) + int(sys.argv[2])))
