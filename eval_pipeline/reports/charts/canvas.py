"""The common style of all charts, and functions that draw and save them with reproducible bytes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_pipeline.reports.charts.svg.drawing import stylesheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, FAINT, LINE, PAPER = "#1f2937", "#6b7280", "#d1d5db", "#ffffff"
SERIES = ("#2563a8", "#b45309", "#0f766e", "#9333ea", "#be123c", "#4d7c0f", "#0e7490", "#854d0e")
"""Colours for series, each readable on white and on black; more series than colours reuse them from the start."""
BLUE, ALARM = SERIES[0], "#c0362c"
_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "text.parse_math": False,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}
_WIDTH = 5.6
_DPI = 160


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, with a description for readers who cannot see it.

    Attributes:
        name: file name without suffix; unique within a page.
        description: what can be read from the chart, in a sentence or two.
        headers, rows: the figures it shows, as a table of texts.
        draw: draws the chart on the given axes, for its picture in PNG.
        svg: the chart as pages show it.
        height: of the picture in inches; all have the same width.
        note: what to take from it, in a phrase below its title.
    """

    name: str
    title: str
    description: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    draw: "Callable[[Axes], None]"
    svg: str
    height: float = 3.5
    note: str = ""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A chart with the contents of its files; without matplotlib there is no picture in PNG."""

    chart: Chart
    svg: str
    png: bytes


def drawn(chart: Chart) -> Drawn:
    """Draws the files of a chart."""
    alone = chart.svg.replace(">", f"><style>{stylesheet()}</style>", 1)
    try:
        import matplotlib
    except ImportError:
        return Drawn(chart, alone, b"")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH, chart.height), layout="constrained", facecolor=PAPER)
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.set_title(chart.title, pad=10)
        chart.draw(axes)
        picture = BytesIO()
        figure.savefig(picture, format="png", dpi=_DPI, metadata={"Software": None})
        return Drawn(chart, alone, picture.getvalue())


def write_chart(found: Drawn, folder: Path) -> None:
    """Writes `<name>.svg`, and `<name>.png` if it could be drawn."""
    (folder / f"{found.chart.name}.svg").write_text(found.svg, encoding="utf-8")
    if found.png:
        (folder / f"{found.chart.name}.png").write_bytes(found.png)
