"""Native Excel charts in one common style."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eval_pipeline.reports.excel.book import Rows
from eval_pipeline.reports.excel.looks import ALARM, BLUE, FAINT, INK, LINE

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

CHART_ROWS = 17
"""How many rows of the sheet a chart covers."""
_MOST_TICKS = 12
_SERIES = (BLUE, "93A9C1")
_DOTS = (BLUE, "B45309", "0F766E", "9333EA", "BE123C", "4D7C0F", "0E7490", "854D0E")
_PARTS = ("4C9F70", "E0A030", "C0662C", ALARM)
_HAIRLINE, _THIN, _THICK = 6350, 12700, 22225


@dataclass(frozen=True, slots=True)
class Plot:
    """The position and the titles of a chart.

    Attributes:
        anchor: cell of the chart's upper left corner.
        width: width of the chart in centimetres.
    """

    title: str
    x_title: str
    y_title: str
    anchor: str
    width: float = 19.0


@dataclass(frozen=True, slots=True)
class AccuracyColumns:
    """Numbers of the table's columns that an accuracy chart is drawn from, counted from 1.

    Attributes:
        up: distance from the accuracy to the upper end of its interval.
        down: distance from the accuracy to the lower end.
        fitted: the falling curve that the ceiling is read from.
    """

    level: int
    accuracy: int
    up: int
    down: int
    threshold: int
    fitted: int


def add_accuracy_chart(
    sheet: "Worksheet", plot: Plot, table: tuple["Worksheet", Rows], columns: AccuracyColumns, highest: int
) -> None:
    """Adds a chart of accuracy against complexity.

    It has points with 95% intervals, the curve that is fitted to them, and a dashed line at the threshold.

    Args:
        sheet: where the chart is added.
        plot: position and titles of the chart.
        table: the sheet with the table, and the table's rows.
        columns: columns of the table.
        highest: highest level on the axis.
    """
    from openpyxl.chart import Reference, ScatterChart, Series

    chart: Any = ScatterChart()
    chart.style, chart.scatterStyle = 2, "lineMarker"
    source, rows = table
    levels = Reference(source, min_col=columns.level, min_row=rows.first, max_row=rows.last)
    accuracy, threshold, fitted = (
        Series(Reference(source, min_col=column, min_row=rows.header, max_row=rows.last), levels, title_from_data=True)
        for column in (columns.accuracy, columns.threshold, columns.fitted)
    )
    _draw_line(accuracy, BLUE, _THICK)
    accuracy.graphicalProperties.line.noFill, accuracy.graphicalProperties.line.solidFill = True, None
    accuracy.marker.symbol, accuracy.marker.size = "circle", 8
    accuracy.marker.graphicalProperties = _filled(BLUE)
    accuracy.errBars = _error_bars(source, rows, columns.up, columns.down)
    _draw_line(threshold, ALARM, _THIN, "dash")
    _draw_line(fitted, FAINT, _THICK)
    threshold.marker.symbol = fitted.marker.symbol = "none"
    chart.series = [accuracy, threshold, fitted]
    _frame(chart, plot)
    step = -(-max(highest, 1) // _MOST_TICKS)
    x_axis, y_axis = chart.x_axis, chart.y_axis
    x_axis.scaling.min, x_axis.scaling.max, x_axis.majorUnit = -step, max(highest, 1) + step, step
    x_axis.majorGridlines = None
    x_axis.number_format = f'[<0]"";[>{max(highest, 1)}]"";0'  # no numbers in the margins beside the levels
    y_axis.scaling.min, y_axis.scaling.max, y_axis.majorUnit, y_axis.number_format = 0, 1, 0.2, "0%"
    x_axis.crosses = y_axis.crosses = "min"
    sheet.add_chart(chart, plot.anchor)


def add_bars_chart(sheet: "Worksheet", plot: Plot, rows: Rows, names: int, values: int) -> None:
    """Adds a chart of horizontal bars with counts, the first row of the table on top.

    Args:
        sheet: the sheet with the table, where the chart is added.
        plot: position and titles of the chart.
        rows: rows of the table.
        names: number of the table's column with the labels, counted from 1.
        values: number of the table's column with the counts.
    """
    from openpyxl.chart import BarChart, Reference
    from openpyxl.chart.label import DataLabelList

    chart: Any = BarChart()
    chart.type, chart.style, chart.gapWidth = "bar", 2, 40
    chart.add_data(Reference(sheet, min_col=values, min_row=rows.header, max_row=rows.last), titles_from_data=True)
    chart.set_categories(Reference(sheet, min_col=names, min_row=rows.first, max_row=rows.last))
    chart.series[0].graphicalProperties = _filled(BLUE)
    chart.series[0].dLbls = DataLabelList(showVal=True, showSerName=False, showCatName=False, showLegendKey=False)
    _frame(chart, plot)
    chart.legend, chart.x_axis.title, chart.y_axis.title = None, None, None
    chart.x_axis.scaling.orientation = "maxMin"
    chart.y_axis.delete, chart.y_axis.majorGridlines, chart.y_axis.scaling.min = True, None, 0
    sheet.add_chart(chart, plot.anchor)


def add_columns_chart(
    sheet: "Worksheet",
    plot: Plot,
    rows: Rows,
    names: int,
    values: Sequence[int],
    number_format: str,
    *,
    stacked: bool = False,
    whiskers: tuple[int, int] | None = None,
    limits: tuple[float, float] | None = None,
) -> None:
    """Adds a chart of vertical columns, one for each row and value column of the table.

    Args:
        sheet: the sheet with the table, where the chart is added.
        plot: position and titles of the chart.
        rows: rows of the table.
        names: number of the table's column with the labels, counted from 1.
        values: numbers of the table's columns with the heights.
        number_format: Excel's number format for the heights.
        stacked: whether the values of a row are parts of one column: right first, then what is wrong.
        whiskers: numbers of the table's columns with the distances to the upper and the lower end of an interval.
        limits: ends of the vertical axis; from 0 if not given.
    """
    from openpyxl.chart import BarChart, Reference

    chart: Any = BarChart()
    chart.type, chart.style, chart.gapWidth = "col", 2, 60
    colours = _PARTS if stacked else _SERIES if whiskers is None else _SERIES[1:]  # whiskers are seen on light colours
    if stacked:
        chart.grouping, chart.overlap = "stacked", 100
    for place, column in enumerate(values):
        heights = Reference(sheet, min_col=column, min_row=rows.header, max_row=rows.last)
        chart.add_data(heights, titles_from_data=True)
        chart.series[place].graphicalProperties = _filled(colours[place])
        chart.series[place].invertIfNegative = False
        if whiskers is not None:
            chart.series[place].errBars = _error_bars(sheet, rows, *whiskers)
    chart.set_categories(Reference(sheet, min_col=names, min_row=rows.first, max_row=rows.last))
    _frame(chart, plot)
    if len(values) == 1:
        chart.legend = None
    chart.y_axis.number_format = number_format
    chart.y_axis.scaling.min, chart.y_axis.scaling.max = limits or (0, None)
    sheet.add_chart(chart, plot.anchor)


@dataclass(frozen=True, slots=True)
class Dots:
    """The points of one series: its name, and the first and last row of the table that belong to it."""

    name: str
    first: int
    last: int


def add_dots_chart(
    sheet: "Worksheet", plot: Plot, series: Sequence[Dots], x: int, y: int, number_format: str, *, joined: bool
) -> None:
    """Adds a chart of points from 0 to 1 in the vertical, one colour for each series.

    Args:
        sheet: the sheet with the table, where the chart is added.
        plot: position and titles of the chart.
        series: rows of the table for each series.
        x: number of the table's column with the horizontal coordinates.
        y: number of the table's column with the vertical ones.
        number_format: Excel's number format for the horizontal axis.
        joined: whether a line joins the points of a series.
    """
    from openpyxl.chart import Reference, ScatterChart, Series

    chart: Any = ScatterChart()
    chart.style, chart.scatterStyle = 2, "lineMarker"
    for place, one in enumerate(series):
        across, up = (Reference(sheet, min_col=column, min_row=one.first, max_row=one.last) for column in (x, y))
        found = Series(up, across, title=one.name)
        colour = _DOTS[place % len(_DOTS)]
        _draw_line(found, colour, _THICK)
        if not joined:
            found.graphicalProperties.line.noFill, found.graphicalProperties.line.solidFill = True, None
        found.marker.symbol, found.marker.size = "circle", 8
        found.marker.graphicalProperties = _filled(colour)
        chart.series.append(found)
    _frame(chart, plot)
    x_axis, y_axis = chart.x_axis, chart.y_axis
    x_axis.majorGridlines, x_axis.number_format = None, number_format
    y_axis.scaling.min, y_axis.scaling.max, y_axis.majorUnit, y_axis.number_format = 0, 1, 0.2, "0%"
    if not joined:
        x_axis.scaling.min = 0
    sheet.add_chart(chart, plot.anchor)


def _frame(chart: Any, plot: Plot) -> None:
    chart.title = _title(plot.title, 1200, bold=True)
    chart.width, chart.height = plot.width, 8.0
    chart.visible_cells_only = False  # some columns are folded
    chart.legend.position = "b"
    chart.x_axis.title, chart.y_axis.title = _title(plot.x_title, 1000), _title(plot.y_title, 1000)
    for axis in (chart.x_axis, chart.y_axis):
        axis.delete = False  # openpyxl leaves this unset, and Excel then hides the axis
        axis.tickLblPos = "low"
    chart.y_axis.majorGridlines.spPr = _outlined(LINE, _HAIRLINE)


def _title(text: str, size: int, bold: bool = False) -> Any:
    from openpyxl.chart.text import RichText, Text
    from openpyxl.chart.title import Title
    from openpyxl.drawing.text import CharacterProperties, Paragraph, ParagraphProperties, RegularTextRun

    looks = CharacterProperties(sz=size, b=bold, solidFill=INK)
    paragraph = Paragraph(pPr=ParagraphProperties(defRPr=looks), r=[RegularTextRun(t=text, rPr=looks)])
    return Title(tx=Text(rich=RichText(p=[paragraph])), overlay=False)


def _draw_line(series: Any, colour: str, width: int, dash: Any = None) -> None:
    from openpyxl.chart.marker import Marker

    series.graphicalProperties, series.smooth, series.marker = _outlined(colour, width, dash), False, Marker()


def _outlined(colour: str, width: int, dash: Any = None) -> Any:
    from openpyxl.chart.shapes import GraphicalProperties
    from openpyxl.drawing.line import LineProperties

    return GraphicalProperties(ln=LineProperties(solidFill=colour, w=width, prstDash=dash))


def _filled(colour: str) -> Any:
    from openpyxl.chart.shapes import GraphicalProperties
    from openpyxl.drawing.line import LineProperties

    return GraphicalProperties(solidFill=colour, ln=LineProperties(solidFill=colour))


def _error_bars(sheet: "Worksheet", rows: Rows, longer: int, shorter: int) -> Any:
    from openpyxl.chart import Reference
    from openpyxl.chart.data_source import NumDataSource, NumRef
    from openpyxl.chart.error_bar import ErrorBars

    up, down = (
        NumDataSource(numRef=NumRef(f=str(Reference(sheet, min_col=column, min_row=rows.first, max_row=rows.last))))
        for column in (longer, shorter)
    )
    looks = _outlined(FAINT, _THIN)
    return ErrorBars(errDir="y", errBarType="both", errValType="cust", noEndCap=False, plus=up, minus=down, spPr=looks)
