"""Writes the `report.xlsx` that compares a suite's model versions."""

from pathlib import Path

from eval_pipeline.core.covering.coverage import WORDS
from eval_pipeline.core.covering.left_out import CaseCounts
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
from eval_pipeline.reports.contents.gold import READING as SUSPECTS_READING
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.colours import colour_rates
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
    figure_cell,
    figure_cells,
)
from eval_pipeline.reports.excel.page import SheetWriter
from eval_pipeline.reports.excel.sheets.comparison import comparison_page, write_pairs
from eval_pipeline.reports.excel.sheets.gold import TITLE as GOLD
from eval_pipeline.reports.excel.sheets.gold import WIDTHS as GOLD_WIDTHS
from eval_pipeline.reports.excel.sheets.gold import write_queries, write_suspects
from eval_pipeline.reports.places.paths import WORKBOOK
from eval_pipeline.reports.queries import in_parts

_WIDTHS = (34, 12, 10, 10, 10, 10, 10, 11, 10, 10, 13, 13, 11, 60)
_TRENDS = (
    Field("model version", 30), Field("date", 12), *(Field(name, 9, INTEGER) for name in WORDS),
    Field("clusters", 9, INTEGER),
    Field("accuracy", 10, PERCENT, rate=True), Field("95% low", 10, PERCENT), Field("95% high", 10, PERCENT),
    Field("points since last date", 12, POINTS), Field("p, corrected", 11, P_VALUE),
    Field("points since first date", 12, POINTS), Field("p, corrected again", 11, P_VALUE),
    Field("tokens", 12, INTEGER), Field("US dollars", 12, DOLLARS), Field("verdict", 60),
)  # fmt: skip
_CONVERSATIONS = (
    Field("model version", 30), Field("date", 12), Field("figure", 44), Field("turns", 9, INTEGER),
    Field("value", 10, "0.000"), Field("95% low", 10, "0.000"), Field("95% high", 10, "0.000"),
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
        sql = differing_query(compared.suite)
        book.add_query("Differing turns", "all rows", sql)
        write_long_sheet(book, "Differing turns", _DIFFERING, in_parts(compared.table(sql)), frozen=4)
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
    page.section("Cases of the suite in these figures")
    page.table(
        ["model version", "cases", "of", "why"],
        [_cases(found.model_version, compared.cases_of(found)) for found in compared.standings],
    )
    page.query("Cases of the suite in these figures", cases_query(compared.suite))


def _cases(name: str, counts: CaseCounts) -> list[Styled]:
    return [
        (name, PLAIN),
        (counts.cases, COUNT),
        (counts.in_suite, COUNT),
        (f"left out: {counts.because()}" if counts.left_out else None, NOTE),
    ]


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
    unit, ends = unit_of(row["metric"]), (row["low"], row["high"])
    value, low, high = (figure_cell(row[of], unit, *ends) for of in ("mean", "low", "high"))
    return {
        "model version": row["model_version"], "date": row["eval_date"].isoformat(), "figure": FIGURES[row["metric"]],
        "turns": row["n"], "value": value, "95% low": low, "95% high": high,
    }  # fmt: skip


def _night(row: Row) -> Row:
    accuracy, low, high = (figure_cell(row[of], "rate", row["low"], row["high"]) for of in ("accuracy", "low", "high"))
    since, first = (
        figure_cell(row[f"{of}_difference"], "points", row[f"{of}_low"], row[f"{of}_high"])
        for of in ("previous", "first")
    )
    return {
        "model version": row["model_version"], "date": row["eval_date"].isoformat(),
        **{word: row[name] for word, name in zip(WORDS, REACHED, strict=True)}, "clusters": row["clusters"],
        "accuracy": accuracy, "95% low": low, "95% high": high,
        "points since last date": since, "p, corrected": row["previous_p_corrected"],
        "points since first date": first, "p, corrected again": row["first_p_corrected"],
        "tokens": row["tokens_total"], "US dollars": figure_cell(row["usd_total"], "usd"),
        "verdict": trend_verdict(row),
    }  # fmt: skip
