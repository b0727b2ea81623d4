"""The sheet `Charts` of a comparison: native charts, each beside the figures that it draws."""

from collections.abc import Sequence
from itertools import groupby
from math import ceil, floor

from eval_pipeline.core.shown import Unit
from eval_pipeline.reports.comparison.suite import Row, Standing, SuiteComparison, pairs_query, trends_query
from eval_pipeline.reports.excel.book import Book
from eval_pipeline.reports.excel.charts import CHART_ROWS, Dots, Plot, add_columns_chart, add_dots_chart
from eval_pipeline.reports.excel.looks import (
    COUNT,
    DOLLARS,
    FAINT,
    PERCENT,
    PLAIN,
    SCORE,
    CellLook,
    Styled,
    figure_cell,
)
from eval_pipeline.reports.excel.page import SheetWriter

TITLE = "Charts"
_WIDTHS = (52, 24, *(13,) * 5, 3)
_COLUMN = "I"
_MOST_SERIES = 12
_DAY = CellLook("yyyy-mm-dd", align="left")
_HELPER = CellLook(SCORE, colour=FAINT)
_UNITS = {"usd": ("US dollars per turn", DOLLARS), "tokens": ("tokens per turn", "#,##0")}


def write_chart_sheet(book: Book, compared: SuiteComparison) -> None:
    """Writes the sheet."""
    page = SheetWriter(book, TITLE, _WIDTHS)
    page.title(
        f"{compared.suite} · charts",
        "Whiskers are 95% intervals; up and down are their lengths. Whether two model versions "
        "differ is told by the paired test, not by whether their intervals overlap.",
    )
    _accuracy(page, compared)
    for kind, priced in compared.priced():
        _cost(page, priced, kind)
    if compared.tested:
        _pairs(page, compared.tested)
    _trend(page, compared)
    page.query("Accuracy, cost and dates", trends_query(compared.suite))
    if compared.tested:
        page.query("Differences", pairs_query(compared.suite))


def _accuracy(page: SheetWriter, compared: SuiteComparison) -> None:
    start = _section(page, "Accuracy of model versions")
    known = [found for found in compared.charted if found.row["accuracy"] is not None]
    rows = [
        [(found.model_version, PLAIN), *_with_interval(found.row, "accuracy", "low", "high", "rate")] for found in known
    ]
    table = page.table(("model version", "accuracy", "95% low", "95% high", "up", "down"), rows)
    if rows:
        plot = Plot("Accuracy of model versions", "model version", "share of correct turns", f"{_COLUMN}{start}")
        add_columns_chart(page.sheet, plot, table, 1, [2], "0%", whiskers=(5, 6), limits=(0, 1))
    _room(page, start)


def _cost(page: SheetWriter, priced: Sequence[Standing], kind: str) -> None:
    name, form = _UNITS[priced[0].unit or "tokens"]
    start = _section(page, f"Cost against accuracy, {kind}")
    rows = [
        [
            (found.model_version, PLAIN),
            (found.cost, CellLook(form)),
            (found.row["accuracy"], CellLook(PERCENT)),
        ]
        for found in priced
    ]
    table = page.table(("model version", name, "accuracy"), rows)
    dots = [Dots(found.model_version, place, place) for place, found in enumerate(priced[:_MOST_SERIES], table.first)]
    plot = Plot(f"Cost against accuracy, {kind}", name, "share of correct turns", f"{_COLUMN}{start}")
    add_dots_chart(page.sheet, plot, dots, 2, 3, form, joined=False)
    _room(page, start)


def _pairs(page: SheetWriter, pairs: Sequence[Row]) -> None:
    start = _section(page, "Model against model: second minus first, with corrected intervals")
    rows = [
        [
            (f"{row['model_b']} minus {row['model_a']}", PLAIN),
            *_with_interval(row, "difference", "low_corrected", "high_corrected", "points"),
        ]
        for row in pairs
    ]
    table = page.table(("pair", "difference, points", "95% low", "95% high", "up", "down"), rows)
    plot = Plot("Model against model", "pair", "percentage points", f"{_COLUMN}{start}")
    add_columns_chart(page.sheet, plot, table, 1, [2], "0", whiskers=(5, 6), limits=_limits(pairs))
    _room(page, start)


def _limits(pairs: Sequence[Row]) -> tuple[float, float]:
    """Returns the ends of an axis for differences: tens of points, between which all intervals and 0 lie."""
    ends = [
        10 * row[name]
        for row in pairs
        for name in ("difference", "low_corrected", "high_corrected")
        if row[name] is not None
    ]
    known = [0.0, *ends]
    return 10 * floor(min(known)), 10 * ceil(max(known))


def _trend(page: SheetWriter, compared: SuiteComparison) -> None:
    known = [row for row in compared.nights if row["accuracy"] is not None]
    series = [(str(name), list(rows)) for name, rows in groupby(known, lambda row: row["model_version"])]
    longest = [(name, rows) for name, rows in series if len(rows) > 1][:_MOST_SERIES]
    if not longest:
        return
    start = _section(page, "Accuracy over evaluation dates")
    cells: list[list[Styled]] = []
    dots = []
    for name, rows in longest:
        first = page.next_row + 1 + len(cells)
        cells += [
            [
                (name, PLAIN),
                (row["day"], _DAY),
                (row["accuracy"], CellLook(PERCENT)),
                (row["n"], COUNT),
            ]
            for row in rows
        ]
        dots.append(Dots(name, first, first + len(rows) - 1))
    page.table(("model version", "date", "accuracy", "turns"), cells)
    plot = Plot("Accuracy over evaluation dates", "date", "share of correct turns", f"{_COLUMN}{start}")
    add_dots_chart(page.sheet, plot, dots, 2, 3, "yyyy-mm-dd", joined=True)
    _room(page, start)


def _section(page: SheetWriter, text: str) -> int:
    page.section(text)
    return page.next_row - 1


def _room(page: SheetWriter, start: int) -> None:
    page.blank(max(0, start + CHART_ROWS - page.next_row))


def _with_interval(row: Row, value: str, low: str, high: str, unit: Unit) -> list[Styled]:
    """Returns a value, its interval and the lengths of the whiskers."""
    ends = (row[low], row[high])
    return [
        figure_cell(row[value], unit, row["low"], row["high"], bold=True),
        *(figure_cell(end, unit, *ends) for end in ends),
        (row["up"], _HELPER), (row["down"], _HELPER),
    ]  # fmt: skip
