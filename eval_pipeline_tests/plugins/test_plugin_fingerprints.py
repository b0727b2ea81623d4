"""The code of an installed package is followed as ours is: what it decides is made anew where it has changed."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from eval_pipeline_tests.plugins.installing import CONSTANT, child, example_suite, install_example
from eval_pipeline_tests.support import DAY, Lab

SUMS, QUANTITIES = "example_sums", "example_quantities"
Changed = set[tuple[str, str]]
"""Tables of the record by suite."""


class Nights:
    """Runs of the same suites, one after the other, with the package changed between them."""

    def __init__(self, lab: Lab, site: Path) -> None:
        self.lab, self._site = lab, site

    def run(self, *options: str) -> Changed:
        """Runs everything; what of the record was written."""
        before = self.lab.record_files()
        said = child(self.lab, self._site, "run", "--eval-date", DAY.isoformat(), *options)
        assert said.code == 0, said.text
        written = [Path(path).parts for path, state in self.lab.record_files().items() if before.get(path) != state]
        return {(parts[0], name.removeprefix("suite=")) for parts in written for name in parts if "suite=" in name}

    def edit(self, module: str, edited: Callable[[str], str]) -> None:
        path = self._site / "eval_pipeline_example" / f"{module}.py"
        text = path.read_text()
        path.write_text(edited(text))
        assert path.read_text() != text

    def replace(self, module: str, before: str, after: str) -> None:
        self.edit(module, lambda text: text.replace(before, after))

    def report(self, suite: str, file: str) -> Path:
        return self.lab.home.reports / suite / "c" / DAY.isoformat() / file

    def asked(self) -> int:
        """Responses in the journal."""
        with closing(sqlite3.connect(self.lab.home.journal)) as journal:
            ((found,),) = journal.execute("SELECT count(*) FROM responses").fetchall()
        return int(found)


@pytest.fixture
def nights(lab: Lab, tmp_path: Path) -> Nights:
    for name in (SUMS, QUANTITIES):
        example_suite(lab, name)
    lab.versions(CONSTANT)
    return Nights(lab, install_example(tmp_path / "site"))


def test_what_a_package_computes_is_made_anew_where_its_code_has_changed(nights: Nights) -> None:
    def scorer() -> tuple[object, ...]:
        where = f"WHERE suite = '{SUMS}' AND metric = 'has_digits'"
        return nights.lab.sql(f"SELECT DISTINCT scorer_version, value FROM metrics {where}")[0]

    nights.run()
    first, asked = scorer(), nights.asked()
    assert first[1] == 1.0
    pages = {path: path.stat().st_mtime_ns for path in nights.lab.home.reports.rglob("*") if path.is_file()}

    for module in ("metric", "track", "aggregate", "report", "provider"):
        nights.edit(module, lambda text: "# what follows means the same\n" + text.replace(" = ", "  =  "))
    assert nights.run() == set()
    assert {path: path.stat().st_mtime_ns for path in pages} == pages
    assert (scorer(), nights.asked()) == (first, asked)

    nights.replace("aggregate", "sum(lengths) / len(lengths)", "sum(lengths) / len(lengths) + 1")
    nights.replace("metric", "0123456789", "abc")
    nights.replace("track", "return read_quantity(text)", "return read_quantity(text[:100])")
    lengths = f"SELECT mean_characters FROM answer_lengths WHERE n > 0 AND suite = '{SUMS}' ORDER BY ALL"
    before = nights.lab.sql(lengths)
    changed = nights.run("--no-report")
    assert {("answer_lengths", SUMS), ("metrics", SUMS), ("generations", QUANTITIES)} <= changed
    assert not {("generations", SUMS), ("evidence", SUMS)} & changed
    assert [mean - 1 for (mean,) in nights.lab.sql(lengths)] == [mean for (mean,) in before] != []
    version, value = scorer()
    assert (version != first[0], value, nights.asked()) == (True, 0.0, asked)

    nights.replace("provider", "Usage(1, 1)", "Usage(2, 2)")
    nights.replace("report", "# Wrong turns", "# Turns that are wrong")
    assert ("generations", SUMS) in nights.run("--suite", SUMS)
    assert nights.report(SUMS, "wrong.md").read_text().startswith("# Turns that are wrong")
    assert nights.asked() == asked + 2
    assert nights.lab.sql(f"SELECT DISTINCT input_tokens FROM turn_results WHERE suite = '{SUMS}'") == [(2,)]
