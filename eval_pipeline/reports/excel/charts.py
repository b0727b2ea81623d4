"""Native charts that look the same in every sheet."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eval_pipeline.reports.excel.looks import ALARM, BLUE, INK, LINE
from eval_pipeline.reports.excel.page import Rows

if TYPE_CHECKING:
    from openpyxl.chart._chart import ChartBase
    from openpyxl.chart.error_bar import ErrorBars
    from openpyxl.chart.series import XYSeries
    from openpyxl.chart.text import RichText
    from openpyxl.worksheet._write_only import WriteOnlyWorksheet

_WIDTH, _HEIGHT = 19.0, 9.5
CHART_ROWS = 21
"""Rows of the sheet that a chart covers."""


@dataclass(frozen=True, slots=True)
class AccuracyColumns:
    """Columns of the table that an accuracy chart is drawn from, 1-based.

    Attributes:
        up, down: distance from the accuracy to the ends of its interval.
    """

    level: int
    accuracy: int
    up: int
    down: int
    threshold: int


def add_accuracy_chart(
    sheet: "WriteOnlyWorksheet", rows: Rows, columns: AccuracyColumns, title: str, x_title: str, highest: int, anchor: str
) -> None:
    """Accuracy against complexity: points with their 95% intervals, joined, and the threshold as a dashed line.

    Args:
        highest: highest level of the axis.
        anchor: cell of the chart's upper left corner.
    """
    from openpyxl.chart import Reference, ScatterChart, Series

    chart: ScatterChart = ScatterChart()
    chart.style, chart.scatterStyle = 2, "lineMarker"
    _frame(chart, title)
    levels = Reference(sheet, min_col=columns.level, min_row=rows.first, max_row=rows.last)

    def series(column: int) -> "XYSeries":
        values = Reference(sheet, min_col=column, min_row=rows.header, max_row=rows.last)
        return Series(values, levels, title_from_data=True)

    accuracy, threshold = series(columns.accuracy), series(columns.threshold)
    _draw_accuracy(accuracy)
    accuracy.errBars = _error_bars(sheet, rows, columns)
    _draw_threshold(threshold)
    chart.series = [accuracy, threshold]
    chart.x_axis.title, chart.y_axis.title = _text(x_title, 1000), _text("share of correct turns", 1000)
    chart.x_axis.scaling.min, chart.x_axis.scaling.max = -0.25, max(highest, 1) + 0.25
    chart.x_axis.scaling.min, chart.x_axis.scaling.max = 0, max(highest, 1)
    chart.x_axis.majorUnit = max(1, round(highest / 12))
    chart.x_axis.number_format, chart.x_axis.majorGridlines = "0", None
    chart.y_axis.scaling.min, chart.y_axis.scaling.max, chart.y_axis.majorUnit = 0, 1, 0.2
    chart.y_axis.number_format = "0%"
    sheet.add_chart(chart, anchor)


def add_column_chart(
    sheet: "WriteOnlyWorksheet", rows: Rows, name_column: int, value_columns: tuple[int, ...], title: str,
    axis_titles: tuple[str, str], number_format: str, anchor: str, stacked: bool = True,
) -> None:  # fmt: skip
    """Upright columns, one a row of the table; the headers name the series."""
    from openpyxl.chart import BarChart, Reference

    chart: BarChart = BarChart()
    chart.type, chart.style, chart.gapWidth = "col", 2, 60
    if stacked:
        chart.grouping, chart.overlap = "stacked", 100
    _frame(chart, title)
    for column, colour in zip(value_columns, (BLUE, "7FA7CC", "C9A227"), strict=False):
        chart.add_data(Reference(sheet, min_col=column, min_row=rows.header, max_row=rows.last), titles_from_data=True)
        chart.series[-1].graphicalProperties.solidFill = colour
    chart.set_categories(Reference(sheet, min_col=name_column, min_row=rows.first, max_row=rows.last))
    chart.x_axis.title, chart.y_axis.title = _text(axis_titles[0], 1000), _text(axis_titles[1], 1000)
    chart.y_axis.number_format, chart.y_axis.scaling.min = number_format, 0
    sheet.add_chart(chart, anchor)


def _frame(chart: "ChartBase", title: str) -> None:
    chart.title = _text(title, 1200, bold=True)
    chart.width, chart.height = _WIDTH, _HEIGHT
    chart.legend.position = "b"
    for axis in (chart.x_axis, chart.y_axis):
        axis.delete = False  # openpyxl leaves it open, and Excel then shows no axis
        axis.tickLblPos = "low"
    chart.y_axis.majorGridlines.spPr = _line(LINE, 6350)


def _text(text: str, size: int, bold: bool = False) -> "RichText":
    from openpyxl.chart.text import RichText, Text
    from openpyxl.chart.title import Title
    from openpyxl.drawing.text import CharacterProperties, Paragraph, ParagraphProperties, RegularTextRun

    looks = CharacterProperties(sz=size, b=bold, solidFill=INK)
    run = RegularTextRun(t=text, rPr=looks)
    body = RichText(p=[Paragraph(pPr=ParagraphProperties(defRPr=looks), r=[run])])
    return Title(tx=Text(rich=body), overlay=False)


def _line(colour: str, width: int, dash: str | None = None) -> object:
    from openpyxl.chart.shapes import GraphicalProperties
    from openpyxl.drawing.line import LineProperties

    return GraphicalProperties(ln=LineProperties(solidFill=colour, w=width, prstDash=dash))


def _draw_accuracy(series: "XYSeries") -> None:
    series.graphicalProperties = _line(BLUE, 22225)
    series.smooth = False
    series.marker.symbol, series.marker.size = "circle", 8
    series.marker.graphicalProperties.solidFill = BLUE
    series.marker.graphicalProperties.line.solidFill = BLUE


def _draw_threshold(series: "XYSeries") -> None:
    series.graphicalProperties = _line(ALARM, 15875, "dash")
    series.smooth = False
    series.marker.symbol = "none"


def _error_bars(sheet: "WriteOnlyWorksheet", rows: Rows, columns: AccuracyColumns) -> "ErrorBars":
    from openpyxl.chart import Reference
    from openpyxl.chart.data_source import NumDataSource, NumRef
    from openpyxl.chart.error_bar import ErrorBars

    def source(column: int) -> NumDataSource:
        return NumDataSource(numRef=NumRef(f=str(Reference(sheet, min_col=column, min_row=rows.first, max_row=rows.last))))

    return ErrorBars(
        errDir="y", errBarType="both", errValType="cust", noEndCap=False,
        plus=source(columns.up), minus=source(columns.down), spPr=_line("6B7280", 12700),
    )  # fmt: skip
