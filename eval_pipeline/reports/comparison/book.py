"""Writes the `report.xlsx` that compares a suite's model versions."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from eval_pipeline.core.covering.coverage import WORDS
from eval_pipeline.core.shown import Unit
from eval_pipeline.reports.comparison.chart_sheet import write_chart_sheet
from eval_pipeline.reports.comparison.contracts import contracts_query
from eval_pipeline.reports.comparison.conversation import FIGURES, figures_query, unit_of
from eval_pipeline.reports.comparison.differing import differing_query
from eval_pipeline.reports.comparison.suite import (
    Row,
    Standing,
    SuiteComparison,
    cases_query,
    pairs_query,
    trends_query,
)
from eval_pipeline.reports.comparison.words import REACHED, comparison_warnings, equals_text, trend_verdict
from eval_pipeline.reports.contents.figure_table import FigureColumn, FigureTable
from eval_pipeline.reports.contents.gold import READING as SUSPECTS_READING
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.long_sheet import Field, write_long_sheet
from eval_pipeline.reports.excel.looks import (
    COUNT,
    DOLLARS,
    INTEGER,
    NOTE,
    P_VALUE,
    PERCENT,
    PLAIN,
    POINTS,
    TEXT,
    WARNING,
    CellLook,
    Styled,
    colour_rates,
    figure_cell,
    figure_cells,
)
from eval_pipeline.reports.excel.page import SheetWriter
from eval_pipeline.reports.excel.sheets.comparison import comparison_page, write_pairs
from eval_pipeline.reports.excel.sheets.gold import TITLE as GOLD
from eval_pipeline.reports.excel.sheets.gold import WIDTHS as GOLD_WIDTHS
from eval_pipeline.reports.excel.sheets.gold import write_queries, write_suspects
from eval_pipeline.reports.places.paths import WORKBOOK

_WIDTHS = (34, 12, 10, 10, 10, 10, 10, 11, 10, 10, 13, 13, 11, 60)
_TRENDS = (
    Field("model version", 30, column="model_version"), Field("date", 12),
    *(Field(word, 9, INTEGER, column=name) for word, name in zip(WORDS, REACHED, strict=True)),
    Field("clusters", 9, INTEGER), Field("accuracy", 10, PERCENT, rate=True),
    Field("95% low", 10, PERCENT, column="low"), Field("95% high", 10, PERCENT, column="high"),
    Field("points since last date", 12, POINTS, column="previous"),
    Field("p, corrected", 11, P_VALUE, column="previous_p_corrected"),
    Field("points since first date", 12, POINTS, column="first"),
    Field("p, corrected again", 11, P_VALUE, column="first_p_corrected"),
    Field("tokens", 12, INTEGER, column="tokens_total"), Field("US dollars", 12, DOLLARS, column="usd"),
    Field("verdict", 60, column="told"),
)  # fmt: skip
_CONVERSATIONS = (
    Field("model version", 30, column="model_version"), Field("date", 12), Field("figure", 44),
    Field("turns", 9, INTEGER, column="n"), Field("value", 10, "0.000", column="mean"),
    Field("95% low", 10, "0.000", column="low"), Field("95% high", 10, "0.000", column="high"),
)  # fmt: skip
_CASES = (
    FigureColumn("model version", "name"), FigureColumn("cases", "cases", "tokens"),
    FigureColumn("of", "cases_in_suite", "tokens"), FigureColumn("why", "why", "note"),
)  # fmt: skip
_CONTRACTS = (
    Field("model version", 30, column="model_version"), Field("contract", 14), Field("turns", 9, INTEGER),
    Field("right", 9, INTEGER, column="correct"), Field("accuracy", 10, PERCENT, rate=True), Field("rank", 8, INTEGER),
)  # fmt: skip
_DIFFERING = (
    Field("second model version", 26, column="model_b"), Field("first", 26, column="model_a"), Field("change", 10),
    Field("turn", 36), Field("question", 50, wrap=True), Field("gold", 24, wrap=True, column="expected"),
    Field("answer of the second", 24, wrap=True, column="answer_b"),
    Field("failure of the second", 20, column="failure_b"),
    Field("answer of the first", 24, wrap=True, column="answer_a"),
    Field("failure of the first", 20, column="failure_a"),
)  # fmt: skip


def write_comparison_book(compared: SuiteComparison, folder: Path) -> None:
    """Writes the workbook."""
    book = Book()
    simulated = any(found.row["simulated"] for found in compared.standings)
    _overview(book, compared)
    write_chart_sheet(book, compared)
    page = comparison_page(book)
    if compared.pairs:
        write_pairs(page, compared.pairs, pairs_query(compared.suite))
        book.add_query("Differing turns", "all rows", differing_query(compared.suite))
        turns = chain.from_iterable(map(compared.differing, compared.pairs))
        write_long_sheet(book, "Differing turns", _DIFFERING, turns, frozen=4)
    else:
        page.note("There is only one model version: nothing to compare it with.")
    if compared.contracts:
        book.add_query("Contracts", "all rows", contracts_query(compared.suite))
        write_long_sheet(book, "Contracts", _CONTRACTS, compared.contracts, frozen=2)
    if compared.conversations:
        book.add_query("Conversations", "all rows", figures_query(compared.suite))
        write_long_sheet(book, "Conversations", _CONVERSATIONS, map(_conversation, compared.conversations), frozen=2)
    book.add_query("Evaluation dates", "all rows", trends_query(compared.suite))
    write_long_sheet(book, "Evaluation dates", _TRENDS, (_night(row) for row in compared.nights), frozen=2)
    page = SheetWriter(book, GOLD, GOLD_WIDTHS)
    page.title("The gold: what is doubted", SUSPECTS_READING)
    write_suspects(page, compared.suite, compared.suspects)
    write_queries(book)
    title = f"{compared.suite} · comparison · {compared.eval_date.isoformat()}"
    book.save(folder / WORKBOOK, title, compared.eval_date, "simulated" if simulated else "")


def _overview(book: Book, compared: SuiteComparison) -> None:
    page = SheetWriter(book, "Overview", _WIDTHS)
    page.title(f"{compared.suite} · model versions side by side", "The newest evaluation of each, by accuracy.")
    for warning in comparison_warnings(compared):
        page.band(warning, WARNING)
    page.blank()
    headers = (
        "model version", "date", *WORDS, "accuracy", "95% low", "95% high", "tokens per turn", "US dollars per turn",
        "Pareto front", "note",
    )  # fmt: skip
    rows = [_standing(found) for found in compared.standings]
    table = page.table(headers, rows, header_height=30)
    colour_rates(page.sheet, f"H{table.first}:H{table.last}")
    page.query("Model versions", trends_query(compared.suite))
    page.query("Pareto front and who is told apart", pairs_query(compared.suite))
    counted = [(found.model_version, compared.cases_of(found)) for found in compared.standings]
    cases = [
        counts.columns() | {"name": name, "why": f"left out: {counts.because()}" if counts.left_out else None}
        for name, counts in counted
    ]
    sql = [cases_query(compared.suite)]
    page.figures(FigureTable("Cases of the suite in these figures", _CASES, cases, sql))


def _standing(found: Standing) -> list[Styled]:
    row = found.row
    front = "" if found.on_front is None else ("yes" if found.on_front else "no")
    note = f"not distinguishable from: {equals_text(found)}" + ("; simulated" if row["simulated"] else "")
    return [
        (found.model_version, PLAIN), (row["eval_date"].isoformat(), TEXT), *((row[name], COUNT) for name in REACHED),
        *figure_cells(row["accuracy"], "rate", row["low"], row["high"]), (row["tokens_a_turn"], COUNT),
        (row["usd_a_turn"], CellLook(DOLLARS)), (front, CellLook(align="right")), (note, NOTE),
    ]  # fmt: skip


def _conversation(row: Row) -> Row:
    figure = {"date": row["eval_date"].isoformat(), "figure": FIGURES[row["metric"]]}
    return row | figure | _cells(row, ("mean", "low", "high"), unit_of(row["metric"]))


def _night(row: Row) -> Row:
    points = {
        of: figure_cell(row[f"{of}_difference"], "points", row[f"{of}_low"], row[f"{of}_high"])
        for of in ("previous", "first")
    }
    told = {"date": row["eval_date"].isoformat(), "usd": figure_cell(row["usd_total"], "usd")}
    return row | _cells(row, ("accuracy", "low", "high"), "rate") | points | told | {"told": trend_verdict(row)}


def _cells(row: Row, names: Sequence[str], unit: Unit) -> Row:
    return {name: figure_cell(row[name], unit, row["low"], row["high"]) for name in names}
