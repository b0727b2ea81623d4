"""A real Chromium that opens pages from disk, without a network."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

CHROMIUM = shutil.which("chromium")
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
