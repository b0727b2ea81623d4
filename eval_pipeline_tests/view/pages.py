"""What a page is made of, as a browser would take it apart."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

import duckdb
from starlette.testclient import TestClient

from eval_pipeline.core.home import Home
from eval_pipeline.view.page import Bench
from eval_pipeline.view.serving import application
from eval_pipeline.web.guard import Door
from eval_pipeline_tests.support import ROOT

PORT = 3100
OURS = frozenset(
    "html head meta title link script body a header nav ol ul li main h1 h2 h3 h4 small p section div table caption "
    "thead tbody tr th td span strong svg g path line rect text polyline circle figure "
    "figcaption footer kbd code pre form label select option input button "
    "details summary aside progress fieldset legend dl dt dd article mark del ins textarea br datalist".split()
)
"""Elements that the templates write."""
CONTROL = [chr(n) for n in (0x1B, 0x07, 0x9B, 0x202A, 0x202B, 0x202D, 0x202E, 0x2066, 0x2067, 0x2068, 0x2069)]
"""Characters that a terminal obeys, or that turn the direction of writing."""


class Parts(HTMLParser):
    """Elements with their attributes, and the text that is seen."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        """What is read, on one line."""
        return " ".join(" ".join(self.texts).split())

    def links(self, holding: str = "") -> list[str]:
        """Addresses of links."""
        found = [attributes.get("href") or "" for tag, attributes in self.elements if tag == "a"]
        return [address for address in found if holding in address]

    def rows(self) -> list[str]:
        """Addresses of the rows of a list."""
        return [a["href"] or "" for tag, a in self.elements if tag == "a" and "data-open" in a]

    def link(self, attribute: str) -> str | None:
        """Address of the link with an attribute."""
        return next((a["href"] for tag, a in self.elements if tag == "a" and attribute in a), None)


def is_harmless(html: str) -> None:
    """Fails where a page has an element or attribute that no template writes, or characters that do things."""
    found = Parts(html)
    assert {tag for tag, _ in found.elements} <= OURS
    for tag, attributes in found.elements:
        assert not [name for name in attributes if name.startswith("on") or name in {"style", "srcdoc", "formaction"}]
        for name in ("href", "src", "action"):
            target = attributes.get(name) or "/"
            assert target.startswith(("/", "#", "data:,")) and not target.startswith("//"), (tag, target)
        if tag == "script":
            assert attributes in [{"src": f"/static/{name}.js", "defer": None} for name in ("keys", "watch")]
    assert not [character for character in CONTROL if character in html]


def turns_of(version: str, day: str = "2026-03-02", **more: object) -> str:
    """Address of the turns of an evaluation."""
    return f"/suites/harbour/turns?{urlencode({'model_version': version, 'eval_date': day, **more}, doseq=True)}"


def turn_of(turn_id: str, version: str, day: str = "2026-03-02", **more: object) -> str:
    """Address of a turn."""
    named = {"turn_id": turn_id, "model_version": version, "eval_date": day, **more}
    return f"/suites/harbour/turn?{urlencode(named, doseq=True)}"


def let_in(bench: Bench) -> TestClient:
    """A browser that is let in, and may send forms."""
    return TestClient(application(bench, Door(PORT, None, forms=True)), base_url=f"http://127.0.0.1:{PORT}")


@contextmanager
def changed(home: Home, folder: Path, *statements: str) -> Iterator[TestClient]:
    """One who is let in to a copy of the store that these statements have changed."""
    with duckdb.connect(shutil.copy(home.store, folder / "eval.duckdb")) as connection:
        for statement in statements:
            connection.execute(statement)
    with Bench.of(Home(folder, home.data)) as bench:
        yield let_in(bench)


@contextmanager
def serving(home: Home, *more: str, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """`eval-pipeline view` in a process of its own, which is killed at the end; `more` are further arguments."""
    program = "from eval_pipeline.cli import main; main()"
    environment = os.environ | {"EVAL_HOME": str(home.root), "EVAL_DATA": str(home.data)} | environment
    arguments = [sys.executable, "-c", program, "view", "--port", "0", *more]
    kept = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(arguments, env=environment, cwd=ROOT, **kept) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def served(home: Home, *more: str, **environment: str) -> Iterator[str]:
    """The address that `eval-pipeline view` prints."""
    with serving(home, *more, **environment) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[1]
