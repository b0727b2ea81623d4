"""Turns and terms by dimension, data set and tag, and what page and workbook show of them and of mistakes."""

from html import unescape
from math import isclose
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from eval_pipeline.core.model import Partition
from eval_pipeline.tracks.sdmx.catalogue.term_lists import write_terms
from eval_pipeline.tracks.sdmx.places import BY, COUNTS, counts_by, counts_by_tag
from eval_pipeline_tests.chains import ran
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.support import DAY, Lab, Puppet
from eval_pipeline_tests.tracks.sdmx.helpers import LISTED, response
from eval_pipeline_tests.tracks.sdmx.test_sdmx_pipeline import ASKED, SAID

CASES = golden("sdmx_places.yaml")["cases"]
NAMES = ("turn_id", "dataset_id", "dimension", "true_positives", "false_positives", "false_negatives")


def rows_of(case: dict[str, Any]) -> list[dict[str, Any]]:
    found = [dict(zip(NAMES, row, strict=True)) for row in case["rows"]]
    return [row | {"sample": 0, "case_id": row["turn_id"].partition("#")[0]} for row in found]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_golden(case: dict[str, Any]) -> None:
    for by, (_, place) in BY.items():
        if by in case:
            found = counts_by(rows_of(case), place)
            assert {name: {what: getattr(one, what) for what in COUNTS} for name, one in found.items()} == case[by]


def test_a_case_with_two_tags_is_counted_under_both() -> None:
    rows = rows_of(CASES[0])
    found = counts_by_tag(rows, {"a": '["x"]', "b": '["x", "y"]', "c": "[]", "d": '["y"]'})
    assert {place: (one.right, one.turns) for place, one in found.items()} == {
        ("COUNTRY", "x"): (1, 2),
        ("COUNTRY", "y"): (0, 2),
    }


def test_page_and_workbook_show_mistakes_places_and_which_mean(lab: Lab, puppet: type[Puppet]) -> None:
    folder = lab.suite(cases=[{**raw, "id": name, "name": f"case {name}"} for name, raw in ASKED.items()], track="sdmx")
    (folder / "structures").mkdir()
    write_terms(folder / "structures" / "terms.csv", LISTED)
    lab.versions({"name": "puppet", "provider": "puppet"})
    Puppet.answer = staticmethod(lambda call: response(SAID[f"{call.case_id}#{call.turn_index}"]))
    lab.evaluate(publish=True)
    report: Path = ran(lab.workspace(), Partition("small", "puppet", DAY), "report").facts["folder"]
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
    assert "macro_recall, mean of turns</th><td>0.944" in page
    assert "macro_recall, mean of cases</th><td>0.958" in page
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
