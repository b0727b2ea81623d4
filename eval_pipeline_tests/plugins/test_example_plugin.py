import json
from datetime import date
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml
from openpyxl import load_workbook

from eval_pipeline.core.installed import plugins
from eval_pipeline_tests.plugins.installing import (
    CONSTANT,
    EXAMPLE,
    child,
    example_suite,
    forget,
    install,
    install_example,
)
from eval_pipeline_tests.support import Lab

SUITES = ("example_sums", "example_quantities")
RAISES = "raise RuntimeError('no such library')\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return install_example(tmp_path / "site")


def test_what_the_example_adds_is_there_from_import_to_report(lab: Lab, site: Path, tmp_path: Path) -> None:
    lab.versions(CONSTANT)
    (tmp_path / "sums.txt").write_text("1 + 2\n3 + 4\n")
    assert "sums" in child(lab, site, "import", "--help").out
    said = child(lab, site, "import", "sums", str(tmp_path / "sums.txt"), "--suite", "asking")
    assert (said.code, "2 cases with 2 turns" in said.out) == (0, True), said.err
    with (lab.home.imported_suites / "asking" / "suite.yaml").open("a") as file:
        file.write("metrics: [has_digits]\n")
    lab.suite("plain")

    said = child(lab, site, "run", "--fail-below", "has_digits=0.5", "--suite", "asking")
    assert said.code == 0, said.text
    said = child(lab, site, "run", "--no-report", "--suite", "plain")
    assert said.code == 0, said.text
    rows = lab.sql("SELECT DISTINCT suite, has_digits FROM finqa_turns ORDER BY 1")
    assert rows == [("asking", True), ("plain", None)]
    assert lab.sql("SELECT DISTINCT suite FROM metrics WHERE metric = 'has_digits'") == [("asking",)]
    rows = lab.sql("SELECT correct, n FROM answer_lengths WHERE suite = 'asking' ORDER BY 1")
    assert rows == [(False, 1), (True, 1)]

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

    said = child(lab, tmp_path, "run", "--suite", "asking")
    assert said.code == 2
    assert "no metric 'has_digits' for track 'finqa'" in child(lab, tmp_path, "validate", "--suite", "asking").err


@pytest.mark.always
def test_doctor_lists_all_that_the_example_adds_with_its_package(lab: Lab, site: Path) -> None:
    said = child(lab, site, "doctor")
    told = [line.strip() for line in said.out.splitlines() if "eval_pipeline_example" in line]
    assert told == [
        f"ok   {what}, from eval-pipeline-example 0.1.0"
        for what in (
            "aggregates answer_lengths: eval_pipeline_example.aggregate:ANSWER_LENGTHS",
            "importers sums: eval_pipeline_example.importer:SUMS",
            "metrics finqa.has_digits: eval_pipeline_example.metric:METRIC",
            "providers constant: eval_pipeline_example.provider:ConstantProvider",
            "reports wrong_turns: eval_pipeline_example.report:WRONG_TURNS",
            "tracks quantities: eval_pipeline_example.track:TRACK",
        )
    ]


def test_the_track_of_the_example_runs_like_ours(lab: Lab, site: Path) -> None:
    for suite in SUITES:
        example_suite(lab, suite)
    rates = {"tracks": {"quantities": {"rates": {"wrong_number": 0.3, "wrong_unit": 0.3, "no_answer": 0.4}}}}
    lab.versions(
        {"name": "oracle", "provider": "oracle"},
        {"name": "null", "provider": "null"},
        {"name": "careless", "provider": "simulated", "options": {"seed": 1}},
        {"name": "wrong", "provider": "simulated", "options": {"seed": 1, **rates}},
    )
    said = child(lab, site, "validate")
    assert said.code == 0, said.text
    assert "example_quantities: 4 cases, 4 turns; the gold of all 4 turns holds; gold answers score 1.0" in said.out
    assert "example_sums: 2 cases" in said.out

    left_out = "note: 'careless' is not evaluated on example_quantities: it has no rates for the track 'quantities'"
    said = child(lab, site, "plan", "--suite", "example_quantities")
    assert (said.code, left_out in said.err) == (0, True), said.text
    planned = [line.removeprefix("example_quantities").split()[1:5] for line in said.out.splitlines() if "$" in line]
    assert planned[:-1] == [["4", "0", "4", "4"]] * 3, "turns, in the journal, to ask, calls"
    assert "recovery" not in said.out

    said = child(lab, site, "run", "--suite", "example_quantities", "--model-version", "oracle")
    assert said.code == 0, said.text
    said = child(lab, site, "run", "--suite", "example_quantities", "--no-report")
    assert (said.code, left_out in said.err) == (0, True), said.text
    rows = lab.sql("SELECT model_version, avg(score) FROM turn_results GROUP BY 1 ORDER BY 1")
    assert rows == [("null", 0.0), ("oracle", 1.0), ("wrong", 0.0)]
    shown = "SELECT case_id, expected, answer, several_numbers FROM quantities_turns"
    assert lab.sql(f"{shown} WHERE model_version = 'oracle' ORDER BY 1") == [
        ("flour", "500 g", "500 g", True),
        ("growth", "12 %", "12 %", True),
        ("oven", "45 min", "45 min", True),
        ("path", "7.5 km", "7.5 km", False),
    ]

    report = lab.home.reports / "example_quantities" / "oracle" / date.today().isoformat()
    assert json.loads((report / "statistics.json").read_text())["further"]["answer_lengths"][0]["n"] == 4
    assert (report / "wrong.md").read_text() == "# Wrong turns\n\n"
    assert (report / "report.xlsx").exists()


def test_a_broken_package_stops_nothing_but_what_needs_it(lab: Lab, tmp_path: Path) -> None:
    points = {"metrics": {"finqa.odd": "broken:ODD"}, "reports": {"odd": "broken:ODD"}, "providers": {"o": "broken:O"}}
    points["reports"]["gone"] = "broken_too.gone:ODD"
    site = install(tmp_path / "site", "broken", RAISES, points | {"importers": {"odd": "broken:ODD"}})
    lab.suite()
    lab.suite("asking", metrics=["odd"])
    lab.versions({"name": "oracle", "provider": "oracle"}, {"name": "mine", "provider": "o"})
    said = child(lab, site, "run", "--suite", "small")
    assert said.code == 0, said.text
    assert "note: 'mine' is not evaluated on small: it cannot be asked: the plug-in 'o' (eval_pipeline.prov" in said.err
    assert "cannot be loaded from broken:O: RuntimeError: no such library" in said.err
    assert said.err.count("the plug-in 'gone' (eval_pipeline.reports) of the package broken 1.0 cannot be loaded") == 1
    assert said.err.count("the plug-in 'odd' (eval_pipeline.reports) of the package broken 1.0 cannot be loaded") == 1
    said = child(lab, site, "run", "--suite", "asking")
    assert (said.code, "metrics.0" in said.err, "RuntimeError: no such library" in said.err) == (1, True, True), (
        said.text
    )
    said = child(lab, site, "doctor")
    assert (said.code, said.out.count("FAIL")) == (1, 6), said.out
    said = child(lab, site, "import", "odd")
    assert (said.code, "RuntimeError: no such library" in said.err) == (2, True), said.text


@pytest.mark.parametrize(
    ("arguments", "looks"),
    [(["run", "--help"], False), (["query", "SELECT 1"], False), (["--help"], True), (["import", "--help"], True)],
)
def test_commands_look_through_no_packages_unless_all_are_listed(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, arguments: list[str], looks: bool
) -> None:
    looked = Mock(wraps=plugins.distributions)
    monkeypatch.setattr(plugins, "distributions", looked)
    forget()
    lab.cli(*arguments)
    assert looked.called is looks


@pytest.mark.parametrize(("module", "most"), [("metric", 15), ("track", 120)])
def test_the_example_is_as_small_as_it_claims(module: str, most: int) -> None:
    assert len((EXAMPLE / "eval_pipeline_example" / f"{module}.py").read_text().splitlines()) <= most


def test_the_suites_of_the_example_use_what_it_adds() -> None:
    sums, quantities = (yaml.safe_load((EXAMPLE / suite / "suite.yaml").read_text()) for suite in SUITES)
    assert (sums["metrics"], quantities["track"]) == (["has_digits"], "quantities")
