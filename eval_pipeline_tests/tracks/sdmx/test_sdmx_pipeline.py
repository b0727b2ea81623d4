"""A suite through the whole pipeline: tables, figures over cases, cases that cannot be read, a changed catalogue."""

import json
import subprocess
from datetime import date
from html import unescape
from math import isclose
from pathlib import Path
from typing import Any

import pytest
import yaml
from openpyxl import load_workbook

from eval_pipeline.operations.runs.evaluations import evaluation_of
from eval_pipeline.reports.excel.workbook import write_workbook
from eval_pipeline.reports.html.page import write_page
from eval_pipeline.reports.nights.message import night_message
from eval_pipeline.reports.nights.night import read_night
from eval_pipeline.reports.places.paths import WORKBOOK
from eval_pipeline_plugins.tracks.sdmx.catalogue.term_lists import ListedTerm, write_terms
from eval_pipeline_plugins.tracks.sdmx.sheets.details import Block, conversation_text, details_text
from eval_pipeline_tests.chains import ran_of_suite
from eval_pipeline_tests.support import DAY, Lab, Puppet
from eval_pipeline_tests.tracks.sdmx.helpers import LISTED, raw_case, response, sdmx_lab

ASKED: dict[str, Any] = {
    "one": raw_case(("GDP of Mexico", {"D:ONE INDICATOR": ["GDP", "GDPPC"], "D:ONE COUNTRY": ["MEX"]}), tags=["x"]),
    "two": raw_case(
        ("population of the Baltics", {"D:ONE INDICATOR": ["POP"], "D:ONE COUNTRY": ["EST", "LVA", "LTU"]}),
        ("nothing more", {}),
        tags=["x", "y"],
    ),
}
SAID = {
    "one#0": {"D:ONE INDICATOR": ["GDP", "GDPPC", "GDP_CONST"], "D:ONE COUNTRY": ["MEX"]},
    "two#0": {"D:ONE INDICATOR": ["POP"], "D:ONE COUNTRY": ["EST", "LVA"], "D:TWO COUNTRY": ["EST"]},
    "two#1": {},
}


LIMIT = 32_767
TERMS = (
    ("tp", "GDP", "gross domestic product", None),
    ("tp", "GDPPC", "GDP per capita", None),
    ("fp", "GDP_CONST", "gross domestic product constant prices", None),
)
WORKED = """\
INDICATOR
[recall: 1.00, precision: 0.67]
True Positives [2]
  * GDP: gross domestic product
  * GDPPC: GDP per capita
False Negatives [0]
False Positives [1]
  * GDP_CONST: gross domestic product constant prices"""
REST = """\
dimensions not in target
COUNTRY
[recall: n/a, precision: 0.00]
True Positives [0]
False Negatives [0]
False Positives [1]
  * MEX: Mexico"""


def block(dimension: str, *terms: tuple[str, str, str, str | None], **more: Any) -> Block:
    return Block(
        **{
            "data_set": "D:ONE",
            "dimension": dimension,
            "in_target": True,
            "precision": 2 / 3,
            "recall": 1.0,
            "terms": terms,
        }
        | more
    )


EXTRA = block("COUNTRY", ("fp", "MEX", "Mexico", None), in_target=False, precision=0.0, recall=None)


def test_the_cell_is_laid_out_as_in_the_spec() -> None:
    assert details_text([block("INDICATOR", *TERMS)]) == WORKED
    assert details_text([EXTRA, block("INDICATOR", *TERMS)]) == f"{WORKED}\n{REST}"
    assert details_text([]) == ""


def test_the_reason_stands_beside_a_term_that_the_catalogue_lacks() -> None:
    text = details_text([block("X", ("fp", "NONE", "", "unknown_code"), ("fp", "MEX", "Mexiko", "other_name"))])
    lines = text.split("\n")
    assert "  * NONE [not valid: no such code]" in lines
    assert "  * MEX: Mexiko [the catalogue has another name]" in lines


def test_several_data_sets_stand_each_on_a_line_of_its_own() -> None:
    text = details_text([block("A"), block("B", data_set="D:TWO"), block("C")])
    names = [line for line in text.split("\n") if line[0] not in "[TF"]
    assert names == ["D:ONE", "A", "C", "D:TWO", "B"]


def test_several_turns_stand_each_under_its_question() -> None:
    text = conversation_text([("First?", [block("INDICATOR", *TERMS)]), ("and\nthen?", [EXTRA])])
    assert text == f"Turn 1: First?\n{WORKED}\n\nTurn 2: and then?\n{REST}"


@pytest.mark.parametrize("name", ["plain name of a term", "näme with ünits 😀", "_x0041_ and _x0042_"])
def test_two_thousand_terms_are_cut_at_a_line_with_a_note(name: str) -> None:
    text = details_text([block("INDICATOR", *(("tp", f"T{i}", f"{name} {i}", None) for i in range(2000)))])
    assert len(text.encode("utf-16-le")) // 2 <= LIMIT
    assert len(text) > 15_000
    *lines, note = text.split("\n")
    assert lines[-1].startswith("  * T")
    assert note == f"… [cut: {2005 - len(lines):,} more lines; the table sdmx_terms holds every term]"


@pytest.fixture
def home(lab: Lab, puppet: type[Puppet]) -> Lab:
    return sdmx_lab(lab, ASKED, SAID)


@pytest.mark.always
def test_terms_dimensions_and_turns_hold_what_was_selected_and_figures_are_means_over_cases(
    home: Lab, tmp_path: Path
) -> None:
    """Case one: (2/3 + 1)/2 = 5/6. Case two: turns (1 + 1 + 0)/3 = 2/3 and 1, so 5/6; recalls 5/6 and 1, so 11/12."""
    home.evaluate(publish=True)
    assert home.sql(
        "SELECT turn_id, dataset_id, dimension, id, name, verdict, retrieved FROM sdmx_terms "
        "WHERE verdict <> 'tp' ORDER BY turn_id, verdict, id"
    ) == [
        ("small/one#0", "D:ONE", "INDICATOR", "GDP_CONST", "gross domestic product constant prices", "fp", True),
        ("small/two#0", "D:ONE", "COUNTRY", "LTU", "Lithuania", "fn", True),
        ("small/two#0", "D:TWO", "COUNTRY", "EST", "Estonia", "fp", True),
    ]
    assert home.sql(
        "SELECT turn_id, dataset_id, dimension, target, true_positives, false_positives, false_negatives, "
        "round(precision, 3), recall FROM sdmx_dimensions ORDER BY ALL"
    ) == [
        ("small/one#0", "D:ONE", "COUNTRY", "given", 1, 0, 0, 1.0, 1.0),
        ("small/one#0", "D:ONE", "INDICATOR", "given", 2, 1, 0, 0.667, 1.0),
        ("small/two#0", "D:ONE", "COUNTRY", "given", 2, 0, 1, 1.0, 2 / 3),
        ("small/two#0", "D:ONE", "INDICATOR", "given", 1, 0, 0, 1.0, 1.0),
        ("small/two#0", "D:TWO", "COUNTRY", "absent", 0, 1, 0, 0.0, None),
    ]
    assert home.sql("SELECT turn_id, correct, target_terms, failure_mode FROM sdmx_turns ORDER BY ALL") == [
        ("small/one#0", False, 3, "extra_terms"),
        ("small/two#0", False, 4, "wrong_data_sets"),
        ("small/two#1", True, 0, None),
    ]
    assert home.sql("SELECT codelist, count(*) FROM sdmx_codes GROUP BY ALL ORDER BY ALL") == [
        ("D:ONE/COUNTRY", 5),
        ("D:ONE/INDICATOR", 4),
        ("D:TWO/COUNTRY", 5),
    ]
    rows = home.sql("SELECT metric, split, split_value, n, mean FROM statistics WHERE metric LIKE 'case_macro_%'")
    found = {(metric.removeprefix("case_macro_"), split, value): (n, mean) for metric, split, value, n, mean in rows}
    expected = {
        ("precision", "all", "all"): (2, 5 / 6),
        ("recall", "all", "all"): (2, (1 + 11 / 12) / 2),
        ("precision", "tag", "y"): (1, 5 / 6),
        ("recall", "tag", "y"): (1, 11 / 12),
        ("precision", "dimension", "INDICATOR"): (2, (2 / 3 + 1) / 2),
        ("precision", "dimension", "COUNTRY"): (2, (1 + 0.5) / 2),
        ("recall", "dimension", "COUNTRY"): (2, (1 + 2 / 3) / 2),
        ("precision", "data_set", "D:TWO"): (1, 0.0),
        ("recall", "data_set", "D:TWO"): (0, None),
    }
    for place, (n, mean) in expected.items():
        assert found[place][0] == n, place
        assert found[place][1] == (None if mean is None else pytest.approx(mean)), place
    # Recalls of the two cases are 1 and 11/12: 0.958 ± 12.7 · 0.042 would be 0.43 to 1.49.
    ((low, high),) = home.sql("SELECT low, high FROM statistics WHERE metric = 'case_macro_recall' AND split = 'all'")
    assert (low, high) == (pytest.approx(0.429, abs=0.001), 1.0)
    assert_page_and_workbook_show_mistakes_places_and_which_mean(home, tmp_path)


def assert_page_and_workbook_show_mistakes_places_and_which_mean(lab: Lab, report: Path) -> None:
    evaluation = evaluation_of(lab.workspace(), "small", "puppet", DAY)
    for write in (write_workbook, write_page):
        write(evaluation, report)
    book = load_workbook(report / "report.xlsx")
    assert book.sheetnames[:6] == [
        *("Overview", "Overview, compact", "Statistics", "By dimension"),
        *("Evaluation", "Mistakes"),
    ]
    assert len(book["By dimension"]._charts) == 2
    header, *wrong = book["Mistakes"].iter_rows(values_only=True)
    shown = [dict(zip(header, row, strict=True)) for row in wrong]
    assert {row["turn"]: row["what is wrong"] for row in shown} == {
        "one#0": "D:ONE INDICATOR: extra GDP_CONST (gross domestic product constant prices)",
        "two#0": "D:ONE COUNTRY: missing LTU (Lithuania)\nD:TWO COUNTRY: extra EST (Estonia)",
    }
    every_number_is_in_a_query(lab, book, {"Overview, compact", "Statistics", "By dimension", "Mistakes"})
    written = {row[:10] for row in book["By dimension"].iter_rows(values_only=True)}
    for sheet, part, sql in book["Queries"].iter_rows(values_only=True):
        if sheet == "By dimension" and part != "Dimension by tag":
            assert {*lab.sql(sql)} <= written, part
    page = unescape((report / "report.html").read_text())
    assert "2 of 3 turns are wrong" in page
    assert "missing LTU (Lithuania)" in page
    for chart in ("turns-by-dimension", "turns-by-data-set", "dimension-by-tag"):
        assert f'id="{chart}"' in page
        assert (report / "charts" / f"{chart}.svg").is_file()
    # Turns: (5/6 + 2/3 + 1)/3 = 0.833 is the mean; cases: (5/6 + 5/6)/2 the same, so recall tells them apart.
    assert "macro_recall, mean of turns</th><td>0.94" in page
    assert "macro_recall, mean of cases</th><td>0.96" in page
    titles = [str(row[0]) for row in book["Statistics"].iter_rows(values_only=True)]
    means = {row[1] for row in book["Statistics"].iter_rows(values_only=True) if row[0] == "metric"}
    assert "Data Query Metrics" in titles
    assert means == {"mean of cases", "mean of turns"}


def every_number_is_in_a_query(lab: Lab, book: Any, sheets: set[str]) -> None:
    """Each number is among those that the sheet's queries return; a heat map shows the share of two of them."""
    answers: dict[str, list[float]] = {}
    for sheet, part, sql in book["Queries"].iter_rows(min_row=2, values_only=True):
        if sheet in sheets:
            rows = lab.sql(sql)
            numbers = [number(value) for row in rows for value in row]
            numbers += [row[3] / row[2] for row in rows if part == "Dimension by tag"]
            answers.setdefault(sheet, []).extend(value for value in numbers if value is not None)
    assert answers.keys() == sheets
    for sheet in sheets:
        for row in book[sheet].iter_rows(values_only=True):
            for value in map(number, row):
                found = value is None or any(isclose(value, other, abs_tol=1e-9) for other in answers[sheet])
                assert found, (sheet, row)


def number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


@pytest.fixture
def workbook(lab: Lab, puppet: type[Puppet]) -> Path:
    """The worked example, a conversation, and a target of 2,000 terms: one is missing, and a data set too many."""
    many = [ListedTerm("D:BIG", "ITEM", f"I{number:04d}", f"item number {number} of many") for number in range(2000)]
    target = {"D:BIG ITEM": [{"id": term.id, "name": term.name} for term in many]}
    cases = {
        "worked": raw_case(("GDP?", {"D:ONE INDICATOR": ["GDP", "GDPPC"]}), tags=["a", "b"]),
        "talk": raw_case(("=1+1", {"D:ONE COUNTRY": ["MEX"]}), ("and?", {})),
        "big": raw_case(("all items", target)),
    }
    said: dict[str, Any] = {
        "worked#0": {"D:ONE INDICATOR": ["GDP", "GDPPC", "GDP_CONST"]},
        "talk#0": {"D:ONE COUNTRY": ["MEX", "ARG"]},
        "talk#1": {},
        "big#0": {"D:BIG ITEM": target["D:BIG ITEM"][:-1], "D:TWO COUNTRY": ["MEX"]},
    }
    sdmx_lab(lab, cases, said, [*LISTED, *many]).evaluate()
    write_workbook(evaluation_of(lab.workspace(), "small", "puppet", DAY), lab.home.root)
    return lab.home.root / WORKBOOK


def test_overview_and_statistics_are_those_of_the_spec(workbook: Path) -> None:
    book = load_workbook(workbook)
    assert book.sheetnames == [
        "Overview", "Overview, compact", "Statistics", "By dimension", "Evaluation", "Mistakes", "All statistics",
        "Turns", "Errors", "Complexity", "Cost", "Comparison", "Gold", "Queries",
    ]  # fmt: skip
    sheet = book["Overview"]
    header, *rows = sheet.iter_rows()
    assert [cell.value for cell in header] == [
        "id", "name", "tags", "question", "macro recall", "macro precision", "indicator selection details",
    ]  # fmt: skip
    by_id = {row[0].value: row for row in rows}
    assert [cell.value for cell in by_id["worked"]] == [
        "worked", "case worked", "a, b", "GDP?", 1.0, pytest.approx(2 / 3), WORKED,
    ]  # fmt: skip
    assert [cell.value for cell in by_id["talk"]][3:6] == ["=1+1\nand?", 1.0, 0.75]
    for row in rows:
        assert row[6].alignment.wrap_text
        assert row[6].data_type == "s"
        assert sheet.row_dimensions[row[0].row].height <= 409
    assert "the table sdmx_terms holds every term" in by_id["big"][6].value
    for found in book:
        for line in found.iter_rows(values_only=True):
            assert all(len(value.encode("utf-16-le")) // 2 <= LIMIT for value in line if isinstance(value, str))
    lines = [[value for value in row if value is not None] for row in book["Statistics"].iter_rows(values_only=True)]
    start = lines.index(["Data Query Metrics"])
    assert lines[start + 2][:2] == ["macro precision", pytest.approx((2 / 3 + 0.75 + 0.5) / 3)]
    assert lines[start + 3][:2] == ["macro recall", pytest.approx((1 + 1 + 1999 / 2000) / 3)]
    interval = ["95% low", "95% high", "cases"]
    assert ["tag", "macro precision", *interval, "macro recall", *interval] in lines
    # One case has a precision there, none a recall.
    assert ["D:TWO", 0.0, 1, 0] in lines


@pytest.mark.services("libreoffice")
def test_libreoffice_opens_the_workbook(workbook: Path, tmp_path: Path) -> None:
    command = ["soffice", f"-env:UserInstallation=file://{tmp_path}/profile", "--headless", "--convert-to", "pdf"]
    subprocess.run([*command, "--outdir", str(tmp_path), str(workbook)], check=True, capture_output=True, timeout=180)
    assert (tmp_path / "report.pdf").stat().st_size > 10_000


def test_an_unknown_id_is_recovered_from(home: Lab) -> None:
    wrong = {"D:ONE COUNTRY": [{"id": "MXC", "name": "Mexico"}]}
    Puppet.answer = staticmethod(
        lambda call: response(wrong if call.number == 0 else SAID[f"{call.case_id}#{call.turn_index}"])
    )
    home.evaluate(upto="turn_metrics")
    first = "SELECT error_class, error_message FROM attempts WHERE turn_id = 'small/one#0' AND number = 0"
    ((error_class, message),) = home.sql(first)
    assert error_class == "value_error"
    assert "has no code 'MXC'" in message
    assert home.sql(
        "SELECT recovery_success, has_error, true_positives FROM sdmx_turns WHERE turn_id = 'small/one#0'"
    ) == [(True, True, 3)]
    asked = [call for call in Puppet.asked if call.number == 1 and call.case_id == "one"]
    assert "has no code 'MXC'" in asked[0].prompt.messages[-1].text


def test_cases_that_cannot_be_read_are_told_each_run_and_the_others_run(home: Lab) -> None:
    cases = home.home.data / "suites" / "small" / "cases"
    (cases / "broken.yaml").write_text("id: broken\nconversation: [\n")
    outside = json.loads(json.dumps(ASKED["one"]).replace('"MEX"', '"MXC"'))
    (cases / "outside.yaml").write_text(yaml.safe_dump({**outside, "id": "outside", "name": "o"}, sort_keys=False))
    for more in (["--no-report"], []):
        said = home.cli("run", "--eval-date", "2026-03-01", *more)
        assert said.code == 1
        assert "small/cases/broken.yaml:3: does not parse" in said.err
        assert "small/cases/outside.yaml:" in said.err
        assert "has no code 'MXC'" in said.err
        assert "Traceback" not in said.text
    assert home.sql("SELECT DISTINCT case_id FROM turn_results ORDER BY ALL") == [("one",), ("two",)]
    assert home.sql("SELECT file FROM case_problems ORDER BY ALL") == [
        ("small/cases/broken.yaml",),
        ("small/cases/outside.yaml",),
    ]
    assert_left_out_is_told(home, said.out)
    validated = home.cli("validate", "--suite", "small")
    assert validated.code == 2
    assert "the case is left out" in validated.err


def assert_left_out_is_told(home: Lab, said: str) -> None:
    """Nobody takes the rest for the suite: terminal, page, workbooks, comparison, leaderboard and digest say so."""
    counted = "2 of at least 4 cases; 2 left out: 1 because it is wrong in the suite's files"
    sentence = f"{counted} (small/cases/outside.yaml:"
    assert f"cases:    {sentence}" in said
    ((cases, in_suite, because),) = home.sql(
        "SELECT cases, cases_in_suite, left_out_because FROM leaderboard_details('small')"
    )
    assert (cases, in_suite) == (2, 4)
    assert "has no code 'MXC'" in because
    assert home.sql("SELECT file, line, case_id, cause FROM left_out_cases ORDER BY ALL") == [
        ("small/cases/broken.yaml", 3, None, "unreadable_file"),
        ("small/cases/outside.yaml", 1, "outside", "wrong"),
    ]
    reports = home.home.reports
    for folder in (reports / "small" / "puppet" / "2026-03-01", reports / "compare" / "small" / "2026-03-01"):
        assert sentence in unescape((folder / "report.html").read_text())
        overview = load_workbook(folder / "report.xlsx")
        texts = [str(cell) for sheet in overview for row in sheet.iter_rows(values_only=True) for cell in row]
        assert any(sentence in text for text in texts)
    night = night_message(read_night(home.workspace().record, date(2026, 3, 1)))
    assert f"{counted}, 1 because its file cannot be read;" in night
    assert "MXC" not in night, "a message that leaves the machine quotes no file"


def test_a_changed_catalogue_asks_again_and_a_changed_comment_of_a_case_does_not(home: Lab) -> None:
    home.evaluate(upto="generations")
    asked = len(Puppet.asked)
    path = home.home.data / "suites" / "small" / "cases" / "one.yaml"
    path.write_text(path.read_text() + "comments: looked at\n")
    home.evaluate(upto="generations")
    assert len(Puppet.asked) == asked
    write_terms(
        home.home.data / "suites" / "small" / "structures" / "terms.csv",
        [*LISTED, ListedTerm("D:ONE", "COUNTRY", "PER", "Peru")],
    )
    made = home.evaluate(upto="generations")
    assert not made["generations"].reused
    assert len(Puppet.asked) == 2 * asked


def test_repeated_answers_are_measured_against_each_other(home: Lab) -> None:
    home.versions({"name": "puppet", "provider": "puppet", "samples_per_turn": 3})
    varied: dict[tuple[str, int], Any] = {
        ("one#0", 2): {"D:ONE INDICATOR": ["GDP"]},  # 1 of 4 terms of the other two
        ("two#1", 1): {"D:ONE COUNTRY": ["EST"]},
    }

    def answer(call: Any) -> Any:
        turn = f"{call.case_id}#{call.turn_index}"
        return response(varied.get((turn, call.sample), SAID[turn]))

    Puppet.answer = staticmethod(answer)
    home.evaluate(upto="statistics")
    found = dict(
        home.sql(
            "SELECT metric, round(mean, 6) FROM statistics WHERE split = 'all' AND metric IN "
            "('case_same_selection', 'case_selection_overlap')"
        )
    )
    # case one: 1 of 3 pairs is equal, the others share 1 of 4 terms; case two: turn 0 always, turn 1 in 1 of 3 pairs
    one, two = (1 / 3, (1 + 2 / 4) / 3), ((1 + 1 / 3) / 2, (1 + 1 / 3) / 2)
    assert found == {
        "case_same_selection": round((one[0] + two[0]) / 2, 6),
        "case_selection_overlap": round((one[1] + two[1]) / 2, 6),
    }


def test_macro_recall_and_precision_are_compared_with_paired_tests(home: Lab) -> None:
    """Nobody is exact on either case, so that only the graded metrics can tell the two apart."""
    cases = [
        {**raw_case(("GDP?", {"D:ONE INDICATOR": ["GDP", "GDPPC"], "D:ONE COUNTRY": ["MEX"]})), "id": f"c{number}"}
        for number in range(12)
    ]
    folder = home.suite(cases=cases, track="sdmx")
    for name in ASKED:
        (folder / "cases" / f"{name}.yaml").unlink()
    home.versions(*({"name": name, "provider": "puppet", "model": name} for name in ("half", "more")))
    said = {"half": {"D:ONE INDICATOR": ["GDP"]}, "more": {"D:ONE INDICATOR": ["GDP", "POP"], "D:ONE COUNTRY": ["MEX"]}}
    for version in said:
        Puppet.answer = staticmethod(lambda call, version=version: response(said[version]))
        home.evaluate("small", version, publish=version == "more")
    ran_of_suite(home.workspace(), "small", "model_comparisons", "comparison_published")
    rows = home.sql(
        "SELECT model_a, model_b, metric, n, clusters, mean_a, mean_b, round(difference, 6), p_corrected < 0.05, "
        "verdict FROM metric_comparisons ORDER BY metric"
    )
    assert rows == [
        ("half", "more", "macro_precision", 12, 12, 0.5, 0.75, 0.25, True, "b_better"),
        ("half", "more", "macro_recall", 12, 12, 0.25, 0.75, 0.5, True, "b_better"),
    ]
    assert home.sql("SELECT verdict FROM model_comparisons") == [("not_significant",)]
    shown = home.cli("compare", "more", "half", "--suite", "small")
    assert "macro_recall: more → half: 0.750 → 0.250 over 12 turns, −0.500 [" in shown.out
    assert "more is significantly better" in shown.out
