"""The report of an evaluation: `python -m benchmarks.reports [--turns 2000]`.

Evaluates a synthetic suite, then tells CPU seconds of each file of its report, the size of the page, and what Chromium
says of it: the time to the first paint, and whatever stands on its console.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from benchmarks.pipeline import MODEL_VERSIONS
from benchmarks.synthetic import write_suite
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.registry import REPORTS
from eval_pipeline.stages.reporting import profile
from eval_pipeline.workspace.workspace import Workspace

DAY = date(2026, 1, 15)
PARTITION = Partition("bench", "instant", DAY)


@contextmanager
def evaluated(turns: int) -> Iterator[Workspace]:
    """A home with an evaluation of that many turns."""
    with tempfile.TemporaryDirectory() as place:
        home = Home(Path(place, "home"), Path(place, "data"))
        responses = write_suite(home.data / "suites" / PARTITION.suite, turns)
        Path(place, "responses.json").write_text(json.dumps(responses))
        (home.data / "model_versions.yaml").write_text(MODEL_VERSIONS)
        run(home)
        yield Workspace(home)


def run(home: Home) -> float:
    """Runs the evaluation, or finds it up to date; returns the CPU seconds."""
    environment = os.environ | {"EVAL_HOME": str(home.root), "EVAL_DATA": str(home.data)}
    environment["EVAL_BENCH_RESPONSES"] = str(home.root.parent / "responses.json")
    command = [sys.executable, "-m", "benchmarks.instant", "run", "--suite", PARTITION.suite]
    command += ["--model-version", PARTITION.model_version, "--eval-date", DAY.isoformat(), "--no-report"]
    return cpu_of(command, environment)


def cpu_of(command: Sequence[str], environment: Mapping[str, str] | None = None) -> float:
    """CPU seconds of a command, which must succeed."""
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if code := os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{' '.join(command)} ended with {code}")
    return usage.ru_utime + usage.ru_stime


def write(workspace: Workspace, folder: Path) -> dict[str, float]:
    """Every file of the report, with the CPU seconds that each took."""
    folder.mkdir()
    evaluation = Evaluation(workspace.record, PARTITION, profile(workspace.track(PARTITION.suite)))
    taken = {}
    for report in REPORTS:
        start = time.process_time()
        report.write(evaluation, folder)
        taken[", ".join(report.files)] = time.process_time() - start
    return taken


def opened(page: Path) -> tuple[float, list[str]]:
    """Milliseconds to the first paint in a new Chromium, and what it says on its console."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium-headless-shell"), args=["--no-sandbox"]
        )
        shown, said = browser.new_page(), list[str]()
        shown.on("console", lambda message: said.append(message.text))
        shown.on("pageerror", lambda error: said.append(str(error)))
        shown.goto(page.as_uri())
        shown.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
        painted = shown.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        browser.close()
    return float(painted), said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    with evaluated(arguments.turns) as workspace:
        folder = workspace.home.root / "report"
        for files, seconds in write(workspace, folder).items():
            print(f"{files:34} {seconds:6.2f} CPU s")
        page = folder / "report.html"
        print(f"{'size of the page':34} {page.stat().st_size / 1e6:6.2f} MB")
        for _ in range(arguments.repeats):
            painted, said = opened(page)
            print(f"{'first paint in Chromium':34} {painted / 1000:6.2f} s; console: {said or 'nothing'}")


if __name__ == "__main__":
    main()
