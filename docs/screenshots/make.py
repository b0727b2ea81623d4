"""Takes the screenshots of the documents: `.venv/bin/python docs/screenshots/make.py`.

`make debian` installs the browser.

Evaluates the two simulated model versions on a shipped suite in a home of its own, and opens the pages that come out.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
SUITE, DAY = "finqa_sample", "2026-01-15"
WIDTH, HEIGHT = 1120, 720
COLOURS = 128


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-c", "from eval_pipeline.cli import main; main()", "run"]
        command += ["--suite", SUITE, "--eval-date", DAY]
        command += ["--model-version", "simulated-strong", "--model-version", "simulated-weak"]
        subprocess.run(command, env=os.environ | {"EVAL_HOME": home}, check=True)
        reports = Path(home, "reports")
        evaluation = reports / SUITE / "simulated-weak" / DAY / "report.html"
        comparison = reports / "compare" / SUITE / DAY / "report.html"
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium-headless-shell"), args=["--no-sandbox"]
            )
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            page.goto(evaluation.as_uri())
            take(page, "report")
            page.locator(".charts").first.evaluate("charts => scrollTo({top: charts.offsetTop, behavior: 'instant'})")
            take(page, "charts")
            page.locator(".t:not([data-kind=right])").nth(0).evaluate("turn => { turn.open = true }")
            page.locator("form.filter").evaluate("section => scrollTo({top: section.offsetTop, behavior: 'instant'})")
            take(page, "turns")
            page.goto(comparison.as_uri())
            take(page, "comparison")
            browser.close()


def take(page: Page, name: str) -> None:
    """What is in view, in few colours: the files stay small."""
    file = HERE / f"{name}.png"
    page.screenshot(path=file)
    Image.open(file).convert("RGB").quantize(COLOURS).save(file, optimize=True)


if __name__ == "__main__":
    main()
