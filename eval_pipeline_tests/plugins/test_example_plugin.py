import json
import os
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from openpyxl import load_workbook

from eval_pipeline_tests.plugins.installing import EXAMPLE, install, install_example
from eval_pipeline_tests.support import Lab, python

CONSTANT = {
    "name": "c",
    "provider": "constant",
    "options": {"answer": '{"plan": [{"tool": "extract", "value": 3, "source": "text"}]}'},
}
RAISES = "raise RuntimeError('no such library')\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return install_example(tmp_path / "site")


def child(lab: Lab, site: Path, *arguments: str) -> tuple[int, str, str]:
    with patch.dict(os.environ, {"PYTHONPATH": str(site)}):
        done = lab.child(*arguments)
    return done.returncode, done.stdout, done.stderr


def figures(lab: Lab, sql: str, site: Path) -> list[dict[str, Any]]:
    code, out, err = child(lab, site, "query", sql, "--format", "json")
    assert code == 0, err
    found: list[dict[str, Any]] = json.loads(out)
    return found


def test_what_the_example_adds_is_there_from_import_to_report(lab: Lab, site: Path, tmp_path: Path) -> None:
    lab.versions(CONSTANT)
    (tmp_path / "sums.txt").write_text("1 + 2\n3 + 4\n")
    assert "sums" in child(lab, site, "import", "--help")[1]
    code, out, err = child(lab, site, "import", "sums", str(tmp_path / "sums.txt"), "--suite", "asking")
    assert (code, "2 cases with 2 turns" in out) == (0, True), err
    with (lab.home.imported_suites / "asking" / "suite.yaml").open("a") as file:
        file.write("metrics: [has_digits]\n")
    lab.suite("plain")

    code, out, err = child(lab, site, "run", "--fail-below", "has_digits=0.5", "--suite", "asking")
    assert code == 0, out + err
    code, out, err = child(lab, site, "run", "--suite", "plain")
    assert code == 0, out + err
    rows = figures(lab, "SELECT DISTINCT suite, has_digits FROM finqa_turns ORDER BY 1", site)
    assert [(row["suite"], row["has_digits"]) for row in rows] == [("asking", True), ("plain", None)]
    rows = figures(lab, "SELECT DISTINCT suite FROM metrics WHERE metric = 'has_digits'", site)
    assert [row["suite"] for row in rows] == ["asking"]
    rows = figures(lab, "SELECT correct, n FROM answer_lengths WHERE suite = 'asking' ORDER BY 1", site)
    assert [tuple(row.values()) for row in rows] == [(False, 1), (True, 1)]

    report = lab.home.reports / "asking" / "c" / date.today().isoformat()
    statistics = json.loads((report / "statistics.json").read_text())
    assert statistics["has_digits_share"] == 1.0
    assert [row["n"] for row in statistics["further"]["answer_lengths"]] == [1, 1]
    assert (report / "wrong.md").read_text() == "# Wrong turns\n\n- asking/line_2#0\n"
    assert "Further figures" in (report / "report.html").read_text()
    sheet = load_workbook(report / "report.xlsx")["answer_lengths"]
    assert list(sheet.iter_rows(min_row=4, values_only=True)) == [
        ("correct", "n", "mean_characters"),
        ("yes", 1, 1),
        ("no", 1, 1),
    ]
    code, out, err = child(lab, site, "doctor")
    assert "ok   metrics finqa.has_digits: eval_pipeline_example.metric:METRIC, from eval-pipeline-example 0.1.0" in out

    code, out, err = child(lab, tmp_path, "run", "--suite", "asking")
    assert code == 2
    assert "no metric 'has_digits' for track 'finqa'" in child(lab, tmp_path, "validate", "--suite", "asking")[2]


def test_a_broken_package_stops_nothing_but_what_needs_it(lab: Lab, tmp_path: Path) -> None:
    points = {"metrics": {"finqa.odd": "broken:ODD"}, "reports": {"odd": "broken:ODD"}, "providers": {"o": "broken:O"}}
    site = install(tmp_path / "site", "broken", RAISES, points | {"importers": {"odd": "broken:ODD"}})
    lab.suite()
    lab.suite("asking", metrics=["odd"])
    lab.versions({"name": "oracle", "provider": "oracle"}, {"name": "mine", "provider": "o"})
    code, out, err = child(lab, site, "run", "--suite", "small")
    assert code == 0, out + err
    assert "note: 'mine' is not evaluated on small: it cannot be asked: the plug-in 'o' (eval_pipeline.prov" in err
    assert err.count("the plug-in 'odd' (eval_pipeline.reports) of the package broken 1.0 cannot be loaded") == 1
    code, out, err = child(lab, site, "run", "--suite", "asking")
    assert (code, "metrics.0" in err, "RuntimeError: no such library" in err) == (1, True, True), out + err
    code, out, err = child(lab, site, "doctor")
    assert (code, out.count("FAIL")) == (1, 5), out
    code, out, err = child(lab, site, "import", "odd")
    assert (code, "RuntimeError: no such library" in err) == (2, True), out + err


def test_help_and_query_look_through_no_packages(lab: Lab) -> None:
    code = (
        "import sys\n"
        "from eval_pipeline.cli.app import command_line\n"
        "from eval_pipeline.core import plugins\n"
        "def refuse(): raise AssertionError('looked')\n"
        "plugins.distributions = refuse\n"
        "sys.argv = ['eval-pipeline', *sys.argv[1:]]\n"
        "sys.exit(command_line())\n"
    )

    for arguments in (["--help"], ["query", "SELECT 1"]):
        assert "looked" not in python(lab, "-c", code, *arguments).stderr
    assert "looked" in python(lab, "-c", code, "import", "--help").stderr


def test_the_example_is_as_small_as_it_claims() -> None:
    lines = (EXAMPLE / "eval_pipeline_example" / "metric.py").read_text().splitlines()
    assert len(lines) <= 15
    assert yaml.safe_load((EXAMPLE / "example_sums" / "suite.yaml").read_text())["metrics"] == ["has_digits"]
