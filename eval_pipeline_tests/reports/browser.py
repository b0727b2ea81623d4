"""A real Chromium that opens pages from disk, without a network."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from eval_pipeline_tests.services import SERVICES, program

CHROMIUM = program(SERVICES["browser"].program)
_ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


@contextmanager
def chromium(*more: str) -> Iterator[Browser]:
    """A headless browser; `more` are further arguments."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*_ARGUMENTS, *more])
        try:
            yield browser
        finally:
            browser.close()


def picture(page: Page, name: str, *, full_page: bool = False) -> None:
    """Keeps a picture in `EVAL_SCREENSHOTS`, if that is set: nothing is asserted of it, and taking one is dear."""
    if folder := os.environ.get("EVAL_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=full_page)
