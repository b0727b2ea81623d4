"""The workbook as openpyxl reads it back."""

import json
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow.parquet as pq
import pytest
from evaluations import HOSTILE_ID, HOSTILE_QUESTION, Made
from openpyxl.worksheet.worksheet import Worksheet

from eval_pipeline.reports.contents.facts import SIMULATED
from eval_pipeline.reports.contents.mistakes import mistakes
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.long_sheet import Field, write_long_sheet
from eval_pipeline.reports.excel.printing import rows_on_paper
from eval_pipeline.store.tables import GENERATIONS, RECOVERY_ATTEMPTS, TURNS

SHEETS = "Overview Mistakes Statistics Turns Errors Complexity Cost Comparison Gold Queries".split()


@pytest.fixture(scope="module")
def workbook(folder: Path) -> openpyxl.Workbook:
    return openpyxl.load_workbook(folder / "report.xlsx")


def column(sheet: Worksheet, name: str) -> list[Any]:
    header = [cell.value for cell in sheet[1]]
    return [row[header.index(name)] for row in sheet.iter_rows(min_row=2)]


def texts(sheet: Worksheet) -> list[str]:
    return [cell.value for row in sheet.iter_rows() for cell in row if isinstance(cell.value, str)]


def found_row(sheet: Worksheet, label: str) -> list[Any]:
    return next(list(row) for row in sheet.iter_rows() if row[0].value == label)


def test_sheets_are_in_order_with_frozen_headers_filters_widths_colours_and_no_formula(
    workbook: openpyxl.Workbook,
) -> None:
    assert workbook.sheetnames == SHEETS
    for sheet in (workbook[name] for name in ("Mistakes", "Statistics", "Turns", "Errors")):
        assert sheet.freeze_panes in ("B2", "C2")
        assert sheet.auto_filter.ref == sheet.dimensions
        assert sheet.print_title_rows == "$1:$1"
        for cell in sheet[1]:
            assert sheet.column_dimensions[cell.column_letter].width >= 8
            assert cell.font.b
    rules = {name: [rule for found in workbook[name].conditional_formatting for rule in found.rules] for name in SHEETS}
    assert {rule.type for rule in rules["Turns"]} == {"colorScale", "expression"}
    for name in ("Overview", "Statistics", "Complexity"):
        assert {rule.type for rule in rules[name]} == {"colorScale"}
    for sheet in workbook:
        assert {cell.data_type for row in sheet.iter_rows() for cell in row} <= {"s", "n", "b", "inlineStr"}


def test_turns_hold_values_of_their_kinds_in_real_formats(workbook: openpyxl.Workbook, folder: Path) -> None:
    turns = pq.read_table(folder / "turns.parquet").to_pylist()
    sheet = workbook["Turns"]
    assert [cell.value for cell in column(sheet, "turn_idx")] == [row["turn_idx"] for row in turns]
    for name in ("correct", "numerical_match", "has_error", "recovery_success"):
        assert [cell.value for cell in column(sheet, name)] == [row[name] for row in turns]
    formats = {"tokens": "#,##0", "logic_recall": "0.000", "turn_idx": "0"}
    for name, form in formats.items():
        cells = column(sheet, name)
        assert [cell.value for cell in cells] == [pytest.approx(row[name]) for row in turns]
        assert {cell.number_format for cell in cells if cell.value is not None} <= {form}


def test_hostile_texts_stay_texts(workbook: openpyxl.Workbook, folder: Path) -> None:
    sheet = workbook["Turns"]
    questions = {cell.value: cell for cell in column(sheet, "question")}
    assert questions[HOSTILE_QUESTION].data_type == "s"
    assert questions[HOSTILE_QUESTION].quotePrefix
    ids = [cell for cell in column(sheet, "conversation_id") if cell.value == HOSTILE_ID]
    assert {cell.data_type for cell in ids} == {"s"}
    cut = next(text for text in questions if text.startswith("+long"))
    assert len(cut) <= 32_767
    assert "[cut: 45,001 characters in all" in cut
    assert any(text.startswith("-2+3 \U0001f600 _x005F_x0041_ and half?\nreally?") for text in questions)
    with zipfile.ZipFile(folder / "report.xlsx") as archive:
        for name in archive.namelist():
            if name.startswith("xl/worksheets/sheet"):
                assert b"<f>" not in archive.read(name), name


def test_overview_statistics_and_cost_tell_the_figures_and_what_is_simulated(
    workbook: openpyxl.Workbook, weak: Made
) -> None:
    sheet = workbook["Overview"]
    assert sheet["A1"].value == "sample · weak"
    assert sheet["A3"].value == SIMULATED
    assert sheet["A3"].fill.fgColor.rgb == sheet["G3"].fill.fgColor.rgb == "00B42318"
    assert found_row(sheet, "Scope")[1].value == "the whole suite"
    assert workbook.properties.keywords == "simulated"
    sheet, overall = workbook["Overview"], weak.evaluation.overall
    for label, metric in (("Accuracy (numerical_match)", "correct"), ("logic_recall", "logic_recall")):
        row, figures = found_row(sheet, label), overall[metric]
        wanted = [figures["mean"], figures["low"], figures["high"], figures["n"], figures["clusters"]]
        assert [cell.value for cell in row[1:6]] == [pytest.approx(value) for value in wanted]
    assert found_row(sheet, "Accuracy (numerical_match)")[1].number_format == "0%"
    dollars = found_row(sheet, "US dollars per successful conversation")
    assert dollars[1].value is None
    assert dollars[6].value == weak.evaluation.cost["usd_reason"]
    queries = [cell.value for cell in column(workbook["Queries"], "SQL on the published store")]
    assert any("FROM statistics WHERE suite = 'sample'" in query for query in queries)
    sheet = workbook["Statistics"]
    splits = [cell.value for cell in column(sheet, "split")]
    assert len(splits) == len(weak.evaluation.statistics)
    assert splits == sorted(splits, key=lambda split: split != "all")
    shown = zip(*[column(sheet, name) for name in ("metric", "split", "group", "mean")], strict=True)
    means = {(metric.value, split.value, group.value): mean.value for metric, split, group, mean in shown}
    assert means["correct", "all", "all"] == pytest.approx(weak.evaluation.overall["correct"]["mean"])
    assert ("correct", "turn_number", 0) in means
    sheet, cost = workbook["Cost"], weak.evaluation.cost
    assert found_row(sheet, "Tokens in all")[1].value == cost["tokens_total"]
    assert found_row(sheet, "Tokens in all")[1].number_format == "#,##0"
    generations, recovery = found_row(sheet, "Generations"), found_row(sheet, "Recovery attempts")
    assert sum(row[place].value for row in (generations, recovery) for place in (2, 3)) == cost["tokens_total"]
    assert len(sheet._charts) == 1  # type: ignore[attr-defined]


def test_turns_have_gold_and_whole_responses_and_errors_lead_to_them(weak: Made, workbook: openpyxl.Workbook) -> None:
    said = {row["turn_id"]: row["response"] for row in weak.evaluation.rows(GENERATIONS)}
    said |= {row["turn_id"]: row["response"] for row in weak.evaluation.rows(RECOVERY_ATTEMPTS)}
    gold = {
        row["turn_id"]: "\n".join(
            f"{name}: {value}" for name, value in json.loads(row["gold"]).items() if value is not None
        )
        for row in weak.evaluation.rows(TURNS)
    }
    shown = zip(*[column(workbook["Turns"], name) for name in ("gold", "response")], strict=True)
    texts = [(one.value, other.value or "") for one, other in shown]
    assert texts == [(gold[turn], said[turn]) for turn in weak.evaluation.results["turn_id"].to_pylist()]
    cells, numbers = (column(workbook["Errors"], name) for name in ("conversation_id", "turn_idx"))
    assert cells
    for cell, number in zip(cells, numbers, strict=True):
        sheet, _, place = cell.hyperlink.location.partition("!")
        row = workbook[sheet.strip("'")][place].row
        assert [found.value for found in workbook["Turns"][row][:2]] == [cell.value, number.value]
        assert cell.hyperlink.target is None, "nothing outside of the workbook"


def test_every_axis_has_a_table_and_a_chart_of_it(weak: Made, workbook: openpyxl.Workbook) -> None:
    sheet, evaluation = workbook["Complexity"], weak.evaluation
    charts = sheet._charts  # type: ignore[attr-defined]
    assert len(charts) == len(evaluation.ceilings) == 3
    for chart, ceiling in zip(charts, evaluation.ceilings, strict=True):
        levels = [row for row in evaluation.levels if row["axis"] == ceiling["axis"]]
        accuracy, threshold, fitted = chart.series

        def cells(reference: str) -> list[Any]:
            return [cell.value for (cell,) in sheet[reference.split("!")[1].replace("$", "")]]

        assert cells(accuracy.xVal.numRef.f) == [row["level"] for row in levels]
        assert cells(accuracy.yVal.numRef.f) == [pytest.approx(row["accuracy"]) for row in levels]
        assert cells(fitted.yVal.numRef.f) == [row["fitted"] for row in levels]
        assert cells(threshold.yVal.numRef.f) == [ceiling["threshold"]] * len(levels)
        ups = cells(accuracy.errBars.plus.numRef.f)
        downs = cells(accuracy.errBars.minus.numRef.f)
        for row, up, down in zip(levels, ups, downs, strict=True):
            if row["high"] is None:
                assert up is down is None
            else:
                assert row["accuracy"] + up == pytest.approx(row["high"])
                assert row["accuracy"] - down == pytest.approx(row["low"])
        title = "".join(run.t for run in chart.title.tx.rich.p[0].r)
        assert title.startswith("Accuracy by ")
        assert "50%" in title or ceiling["reason"] in title
        assert chart.visible_cells_only is False, "helpers are folded"
        assert chart.x_axis.delete is chart.y_axis.delete is False


def test_more_rows_than_a_sheet_holds_go_on_in_the_next_and_a_full_one_is_followed_by_no_empty_one(
    weak: Made, tmp_path: Path
) -> None:
    book = Book()
    fields = [Field("a", format="0"), Field("b")]
    write_long_sheet(book, "Long", fields, [{"a": n, "b": f"r{n}"} for n in range(7)], 1, most_rows=4)
    write_long_sheet(book, "Full", [Field("a")], [{"a": "x"}] * 3, 1, most_rows=4)
    book.save(tmp_path / "x.xlsx", "title", weak.partition.eval_date, "")
    workbook = openpyxl.load_workbook(tmp_path / "x.xlsx")
    assert workbook.sheetnames == ["Long", "Long 2", "Long 3", "Full"]
    assert [[cell.value for cell in column(sheet, "a")] for sheet in workbook][:3] == [[0, 1, 2], [3, 4, 5], [6]]
    assert workbook["Long 2"].auto_filter.ref == "A1:B4"


@pytest.mark.parametrize(
    ("scale", "heights", "pages", "rows"),
    [
        # A page has 520 points; at 50% it holds 1040 of the sheet's.
        (100, [20, *[100] * 9], 1, 6),
        (100, [20, *[100] * 9], 2, 10),
        (50, [40, *[100] * 30], 1, 11),
        (100, [20, 600, 100], 1, 1),
        (100, [20], 1, 1),
    ],
)
def test_as_many_rows_are_printed_as_the_pages_hold(scale: int, heights: list[float], pages: int, rows: int) -> None:
    assert rows_on_paper(scale, heights, pages) == rows


def test_paper_has_whole_pages_and_says_what_it_leaves_out(weak: Made, tmp_path: Path) -> None:
    book = Book()
    wide = [Field("a", 60), Field("b", 60), Field("c", 60), Field("d", 60)]
    write_long_sheet(book, "Long", wide, [dict.fromkeys("abcd", "x")] * 200, 1)
    book.save(tmp_path / "x.xlsx", "title", weak.partition.eval_date, "")
    sheet = openpyxl.load_workbook(tmp_path / "x.xlsx")["Long"]
    printed = sheet.print_area.partition("!")[2].replace("$", "")
    rows = int(printed.removeprefix("A1:C"))
    assert 20 < rows < 80
    assert sheet.oddFooter.left.text == f"&A: the first {rows - 1} of 200 rows; the file has all"
    assert sheet.dimensions == "A1:D201"


def test_of_each_group_the_accuracy_is_seen_and_a_click_shows_its_other_metrics(workbook: openpyxl.Workbook) -> None:
    sheet = workbook["Statistics"]
    shown = zip(*[column(sheet, name) for name in ("metric", "split", "group")], strict=True)
    seen: dict[tuple[Any, Any], list[str]] = {}
    for metric, split, group in shown:
        if not sheet.row_dimensions[metric.row].hidden:
            seen.setdefault((split.value, group.value), []).append(metric.value)
    assert len(seen.pop(("all", "all"))) > 30
    assert len(seen) > 20
    assert set(map(tuple, seen.values())) == {("correct",)}
    assert not sheet.sheet_properties.outlinePr.summaryBelow


def test_the_overview_begins_with_figures_mistakes_and_charts(workbook: openpyxl.Workbook, weak: Made) -> None:
    sheet = workbook["Overview"]
    wrong = [row for row in weak.evaluation.results.to_pylist() if not row["correct"]]
    kinds = next(row for row in range(1, 60) if sheet.cell(row, 1).value == f"{len(wrong)} wrong turns by kind")
    counted = {row[0].value: (row[1].value, row[2].value) for row in sheet.iter_rows(kinds + 1, kinds + 20)}
    counts = Counter(row["kind"] for row in mistakes(weak.evaluation))
    assert {kind: counted[kind] for kind in counts} == {
        kind: (turns, turns / weak.evaluation.turns) for kind, turns in counts.items()
    }
    bars, levels = sheet._charts  # type: ignore[attr-defined]
    assert bars.series[0].val.numRef.f.startswith(f"'Overview'!$B${kinds + 1}:")
    assert levels.series[0].yVal.numRef.f.startswith("'Complexity'!")
    assert bars.anchor._from.row < kinds + 15
    assert sheet.row_dimensions[found_row(sheet, "logic_recall")[0].row].hidden, "metrics are folded"
    assert not sheet.row_dimensions[found_row(sheet, "Tokens per right turn")[0].row].hidden


def test_openpyxl_is_not_imported_before_a_workbook_is_made() -> None:
    code = "import sys, eval_pipeline.stages.reporting; sys.exit('openpyxl' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
