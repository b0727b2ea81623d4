"""Any figure of a workbook is returned by the SQL that the workbook itself names."""

from math import isclose
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pytest
from evaluations import Made, evaluate, make_home
from openpyxl.utils.escape import unescape

from eval_pipeline.reports.comparison.book import write_comparison_book
from eval_pipeline.reports.comparison.differing import turn_name
from eval_pipeline.reports.comparison.suite import read_comparison
from eval_pipeline.reports.excel.looks import heading_width
from eval_pipeline.reports.excel.workbook import write_workbook
from eval_pipeline.reports.html.drawing import drawn_turns
from eval_pipeline.reports.html.turns import turn_cards
from eval_pipeline.reports.queries import RecordQueries
from eval_pipeline.stages.reporting import page_path
from eval_pipeline.store.published.query import run_query
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import TRENDS, TURN_RESULTS, arrow_schema
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline_tests.chains import compared, ran, ran_of_suite

Numbers = list[float]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Two model versions of the sample, one with prices and two samples a turn; compared, published and reported."""
    home = make_home(tmp_path_factory.mktemp("published"), files=6)
    found = [evaluate(home, name) for name in ("weak", "priced")]
    workspace = found[1].workspace
    compared(workspace, "sample")
    for one in found:
        ran(workspace, one.partition, "published", run=RunContext("run"))
        ran(workspace, one.partition, "report")
    ran_of_suite(workspace, "sample", "comparison_published")
    return found[1]


@pytest.fixture(scope="module")
def books(made: Made) -> dict[str, openpyxl.Workbook]:
    folder = ran_of_suite(made.workspace, "sample", "comparison_report").facts["folder"]
    paths = {
        "evaluation": page_path(made.workspace.home, made.partition).with_name("report.xlsx"),
        "comparison": folder / "report.xlsx",
    }
    return {name: openpyxl.load_workbook(path) for name, path in paths.items()}


@pytest.mark.parametrize(("name", "least"), [("evaluation", 18), ("comparison", 6)])
def test_record_and_store_answer_every_printed_query_alike(
    made: Made, books: dict[str, openpyxl.Workbook], name: str, least: int
) -> None:
    """What a sheet shows is what the record answers; a reader asks the store."""
    queries = {str(row[2]) for row in books[name]["Queries"].iter_rows(min_row=2, values_only=True)}
    reported = made.evaluation if name == "evaluation" else read_comparison(made.workspace.record, "sample")
    for sql in queries:
        ours, published = reported.query(sql), run_query(made.workspace.home.store, sql).to_pylist()
        assert ours or "gold_suspects" in sql, sql
        # Publishing adds columns.
        shown = [{name: row[name] for name in ours[0]} for row in published]
        assert sorted(map(repr, ours)) == sorted(map(repr, shown)), sql
    assert len(queries) >= least


def test_reports_of_one_process_read_each_their_own_rows_and_hold_none_afterwards() -> None:
    before = pa.total_allocated_bytes()
    rows = [{"suite": "s", "model_version": "m" * (1 << 20)}]
    reports = [
        RecordQueries([TRENDS], lambda _, found=found: pa.Table.from_pylist(found, arrow_schema(TRENDS)))
        for found in ([], rows)
    ]
    for sql in ("SELECT suite FROM trends", "SELECT suite AS again FROM trends"):
        assert [len(report.rows(sql)) for report in reports] == [0, 1]
    assert pa.total_allocated_bytes() - before > 1 << 20
    reports.clear()
    assert pa.total_allocated_bytes() - before < 1 << 20


def test_what_workbooks_show_comes_from_the_queries_that_they_print(
    made: Made, books: dict[str, openpyxl.Workbook], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[str] = set()
    for name in ("rows", "table"):
        answer = getattr(RecordQueries, name)
        monkeypatch.setattr(RecordQueries, name, lambda self, sql, then=answer: asked.add(sql) or then(self, sql))
    write_workbook(made.evaluation, tmp_path)
    write_comparison_book(read_comparison(made.workspace.record, "sample"), tmp_path)
    for book in books.values():
        assert {str(row[2]) for row in book["Queries"].iter_rows(min_row=2, values_only=True)} <= asked


def test_the_numbers_of_every_row_of_a_comparison_are_those_of_a_row_of_a_query(
    made: Made, books: dict[str, openpyxl.Workbook]
) -> None:
    book = books["comparison"]
    answers: dict[str, list[Numbers]] = {}
    for sheet, _, sql in book["Queries"].iter_rows(min_row=2, values_only=True):
        rows = run_query(made.workspace.home.store, str(sql)).to_pylist()
        assert rows or "gold_suspects" in str(sql), sql
        answers.setdefault(str(sheet), []).extend(sorted(numbers(row.values())) for row in rows)
    found = 0
    for sheet in set(book.sheetnames) - {"Queries"}:
        for place, row in enumerate(book[sheet].iter_rows(values_only=True), start=1):
            wanted = numbers(row)
            if wanted:
                found += 1
                assert any(holds(answer, wanted) for answer in answers[sheet]), (sheet, place, row)
    assert found >= 5


def test_differing_turns_have_the_texts_of_their_turns(made: Made, books: dict[str, openpyxl.Workbook]) -> None:
    """Question, gold, both answers and failure modes, of the sample that is named."""
    book = books["comparison"]
    (sql,) = [row[2] for row in book["Queries"].iter_rows(min_row=2, values_only=True) if row[0] == "Differing turns"]
    rows = [
        tuple(value and value[:9000] for value in row.values())
        for row in run_query(made.workspace.home.store, str(sql)).to_pylist()
    ]
    written = book["Differing turns"].iter_rows(min_row=2, values_only=True)
    # A cell holds 32,767 characters at most.
    shown = [tuple(cell if cell is None else unescape(cell)[:9000] for cell in row) for row in written]
    assert len(shown) == len(rows) > 3
    assert all(row[4] and row[5] for row in shown)
    assert list(map(repr, rows)) == list(map(repr, shown))
    place = made.partition
    recorded = made.workspace.record.read(TURN_RESULTS, RecordKey.of(place)).to_pylist()
    said = {turn_name(row["turn_id"], row["sample"]): row["answer"] for row in recorded}
    column = 6 if rows[0][0] == place.model_version else 8
    assert {row[3]: row[column] for row in rows} == {row[3]: said[row[3]] and said[row[3]][:9000] for row in rows}


def test_conversations_are_those_of_the_sample_that_is_named(made: Made) -> None:
    cards = turn_cards(made.evaluation, drawn_turns(made.evaluation), made.workspace.home.reports).cards
    assert {"~1" in card.place for card in cards} == {True, False}
    for card in cards:
        assert len({"~1" in said.place for said in card.conversation} | {"~1" in card.place}) == 1
        assert len({said.place for said in card.conversation}) == len(card.conversation)


@pytest.mark.parametrize("name", ["evaluation", "comparison"])
def test_headings_fit_their_cells(books: dict[str, openpyxl.Workbook], name: str) -> None:
    looked = 0
    for sheet in books[name]:
        widths = {letter: found.width for letter, found in sheet.column_dimensions.items()}
        for row in sheet.iter_rows():
            for cell in row:
                if (
                    cell.value
                    and cell.font.b
                    and cell.font.color.rgb == "00FFFFFF"
                    and cell.fill.fgColor.rgb == "001F4E79"
                ):
                    looked += 1
                    lines = int((sheet.row_dimensions[cell.row].height or 15) // 15)
                    room = widths[cell.column_letter]
                    assert heading_width(str(cell.value), lines) <= room, (sheet.title, cell.value, room, lines)
    assert looked > 30


def test_every_sheet_with_figures_names_a_query(books: dict[str, openpyxl.Workbook]) -> None:
    for book in books.values():
        named = {row[0] for row in book["Queries"].iter_rows(min_row=2, values_only=True)}
        assert named == set(book.sheetnames) - {"Queries"}


def numbers(values: Any) -> Numbers:
    """The numbers among the values of a row; verdicts are none."""
    known = (float(value) if is_level(value) else value for value in values)
    return sorted(float(value) for value in known if isinstance(value, int | float) and not isinstance(value, bool))


def is_level(value: Any) -> bool:
    """Groups of `statistics` are texts in the store, and numbers in the workbook where they are levels."""
    return isinstance(value, str) and value.isdecimal()


def holds(answer: Numbers, wanted: Numbers) -> bool:
    """Whether each of the numbers is in the answer, as often as it is wanted."""
    left = list(answer)
    for number in wanted:
        place = next((i for i, other in enumerate(left) if isclose(number, other, rel_tol=1e-9, abs_tol=1e-12)), None)
        if place is None:
            return False
        del left[place]
    return True
