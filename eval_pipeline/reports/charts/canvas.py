"""A chart of a page, and its files with reproducible bytes."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from eval_pipeline.core.hashing.described import installed
from eval_pipeline.core.ids import json_hash
from eval_pipeline.reports.charts.svg.drawing import WIDTH, escaped, fitted, light_stylesheet, stylesheet
from eval_pipeline.reports.places.folder import made_before

_FONT = "DejaVu Sans"
_MARGIN, _HEAD = 12, 34
_BOX = re.compile(r'viewBox="0 0 (\S+) (\S+)"')
_ZOOM = 3
"""Pixels for one unit of a chart."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, with a description for readers who cannot see it.

    Attributes:
        name: file name without suffix; unique within a page.
        description: what can be read from the chart, in a sentence or two.
        headers, rows: the figures it shows, as a table of texts.
        svg: the chart as pages show it.
        note: what to take from it, in a phrase below its title.
    """

    name: str
    title: str
    description: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    svg: str
    note: str = ""


def write_chart(chart: Chart, folder: Path) -> None:
    """Writes `<name>.svg`, and `<name>.png` if the extra `charts` is installed."""
    (folder / f"{chart.name}.svg").write_text(_alone(chart, stylesheet()), encoding="utf-8")
    name, drawn = f"{chart.name}.png", _alone(chart, light_stylesheet())
    before = made_before(folder.parent, f"{folder.name}/{name}", json_hash([drawn, installed(("resvg-py",))]))
    found = b""
    with suppress(OSError, ValueError):  # somebody is just removing that night, or has changed it
        found = b"" if before is None else before.content(*before.files)
    if found := found or picture(chart):
        (folder / name).write_bytes(found)


def picture(chart: Chart) -> bytes:
    """Returns the chart in PNG; nothing without the extra `charts`."""
    try:
        from resvg_py import svg_to_bytes
    except ImportError:
        return b""
    # Only this font, so that a chart has the same bytes on every machine.
    with as_file(files(__package__) / "DejaVuSans.ttf") as font:
        return svg_to_bytes(
            _alone(chart, light_stylesheet()), background="#ffffff", zoom=_ZOOM, font_files=[str(font)],
            skip_system_fonts=True, font_family=_FONT, sans_serif_family=_FONT,
        )  # fmt: skip


def _alone(chart: Chart, style: str) -> str:
    """Returns the chart with its style, its title and a margin."""
    title = f'<text class="figure" y="{_MARGIN - _HEAD + 6}">{escaped(fitted(chart.title, WIDTH))}</text>'
    framed = _BOX.sub(
        lambda box: (
            f'viewBox="{-_MARGIN} {-_HEAD} {float(box[1]) + 2 * _MARGIN:g} {float(box[2]) + _HEAD + _MARGIN:g}"'
        ),
        chart.svg,
        count=1,
    )
    return framed.replace(">", f"><style>{style}</style>{title}", 1)
