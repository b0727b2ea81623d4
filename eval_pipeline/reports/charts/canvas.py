"""The common style of all charts, and functions that draw and save them with reproducible bytes."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.installed.extras import install
from eval_pipeline.reports.charts.svg.drawing import stylesheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, FAINT, LINE, PAPER = "#1f2937", "#6b7280", "#d1d5db", "#ffffff"
SERIES = ("#2563a8", "#b45309", "#0f766e", "#9333ea", "#be123c", "#4d7c0f", "#0e7490", "#854d0e")
"""Colours for series, each readable on white and on black; more series than colours reuse them from the start."""
BLUE, ALARM = SERIES[0], "#c0362c"
_DARK = {INK: "--ink", FAINT: "--faint", LINE: "--line", PAPER: "--paper", BLUE: "--blue", ALARM: "--alarm"}
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
    "svg.fonttype": "none",
    "svg.hashsalt": "eval-pipeline",
}
UNDRAWN = f"Charts need matplotlib; {install('charts')}. These are their figures."
_WIDTH = 5.6
_DPI = 160
_HEAD = re.compile(r"<svg [^>]*?(viewBox=\"[^\"]*\")[^>]*>")
_NOT_INLINE = re.compile(r"\s*<(metadata|title|style)\b.*?</\1>", re.DOTALL)
_PLACES = re.compile(r"(\bid=\"|url\(#|href=\"#)")
_FONT = re.compile(r"(font: (?:\w+ )?[\d.]+px) [^;\"]*")


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, with a description for readers who cannot see it.

    Attributes:
        name: file name without suffix; unique within a page.
        description: what can be read from the chart, in a sentence or two.
        headers, rows: the figures it shows, as a table of texts.
        draw: draws the chart on the given axes.
        height: in inches; all charts have the same width.
        svg: the chart as pages show it; empty: pages show what `draw` draws.
        note: what to take from it, in a phrase below its title.
    """

    name: str
    title: str
    description: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    draw: "Callable[[Axes], None]"
    height: float = 3.5
    svg: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A drawn chart: the contents of its files, and the markup for a page.

    Without matplotlib there is no picture in PNG, and pages show the figures of charts without `svg` as a table.
    """

    chart: Chart
    svg: str
    png: bytes
    inline: str


def drawn(chart: Chart) -> Drawn:
    """Draws a chart, as far as it needs matplotlib only if that is installed."""
    alone = chart.svg.replace(">", f"><style>{stylesheet()}</style>", 1)
    try:
        import matplotlib
    except ImportError:
        return Drawn(chart, alone, b"", chart.svg)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH, chart.height), layout="constrained", facecolor=PAPER)
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.set_title(chart.title, pad=10)
        chart.draw(axes)
        text, picture = StringIO(), BytesIO()
        figure.savefig(picture, format="png", dpi=_DPI, metadata={"Software": None})
        if chart.svg:
            return Drawn(chart, alone, picture.getvalue(), chart.svg)
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Title": chart.title})
    svg = text.getvalue()
    return Drawn(chart, svg, picture.getvalue(), _inline(chart, svg))


def write_chart(found: Drawn, folder: Path) -> None:
    """Writes `<name>.svg` and `<name>.png`, as far as they could be drawn."""
    if found.svg:
        (folder / f"{found.chart.name}.svg").write_text(found.svg, encoding="utf-8")
    if found.png:
        (folder / f"{found.chart.name}.png").write_bytes(found.png)


def _inline(chart: Chart, svg: str) -> str:
    """Returns the SVG for use inside a page.

    It is labelled for screen readers, uses the page's font and colours, and has unique ids.
    """
    body = _NOT_INLINE.sub("", svg[svg.index("<svg ") :])
    body = _PLACES.sub(rf"\g<1>{chart.name}-", body)
    body = _FONT.sub(r"\1 inherit", body)
    for colour, variable in _DARK.items():
        body = body.replace(colour, f"var({variable})")
    title, described = f"{chart.name}-title", f"{chart.name}-desc"
    head = (
        rf'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" \1 role="img" '
        rf'stroke-linejoin="round" aria-labelledby="{title} {described}">'
    )
    names = (
        f'<title id="{title}">{escape(chart.title)}</title><desc id="{described}">{escape(chart.description)}</desc>'
    )
    return _HEAD.sub(lambda match: match.expand(head) + names, body, count=1)
