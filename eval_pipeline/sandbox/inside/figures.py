"""A chart as data: one row for each thing that it shows, whatever its colours, sizes and fonts.

Runs inside the jail. matplotlib is only looked for where the code has imported it.

    panel   number of the axes within the figure; missing for the figure's own title
    part    line, bar, horizontal bar, point, cell, wedge, area, segment, title, x label, y label, text, x scale, ...
    series  the name in the legend, or the text of a title or label
    place   position of a point in its line or area
    x, y    numbers, texts (of a categorical axis) or dates
    value   what a colour stands for
"""

import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

COLUMNS = ("panel", "part", "series", "place", "x", "y", "value")
_DATE = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?")
_LINEAR = "linear"

Mark = tuple[Any, ...]


def figure_of(value: object) -> Any:
    """Returns the figure that a value is, or is a part of: a figure, axes, or several axes; None for other values."""
    module = sys.modules.get("matplotlib.figure")
    if module is None:
        return None
    if isinstance(value, np.ndarray) and value.dtype == object and value.size:
        value = value.flat[0]
    elif isinstance(value, list | tuple) and value:
        value = value[0]
    if isinstance(value, module.FigureBase):
        return value
    if isinstance(value, sys.modules["matplotlib.artist"].Artist):
        return value.get_figure()
    return None


def marks_of(figure: Any) -> pd.DataFrame:
    """Returns what a figure shows, with the columns `COLUMNS`."""
    shown = [axes for axes in figure.axes if axes.get_label() != "<colorbar>" and axes.has_data()]
    found: list[Mark] = []
    if title := figure.get_suptitle():
        alone = len(shown) == 1 and not shown[0].get_title()
        found.append((0 if alone else None, "title", title, None, None, None, None))
    for panel, axes in enumerate(shown):
        found += [(panel, *mark) for mark in _of_axes(axes)]
    return pd.DataFrame(found, columns=list(COLUMNS), dtype=object)


def _of_axes(axes: Any) -> Iterator[Mark]:
    named = axes.get_legend() is not None
    x_axis, y_axis = _Scale(axes.xaxis), _Scale(axes.yaxis)

    def name(artist: Any) -> str | None:
        label = str(artist.get_label())
        return label if named and not label.startswith("_") else None

    for line in axes.lines:
        yield from _of_line(line, name(line), x_axis, y_axis)
    bars = set()
    for container in axes.containers:
        if type(container).__name__ == "BarContainer":
            bars |= {id(patch) for patch in container.patches}
            yield from _of_bars(container, name(container), x_axis, y_axis)
    for patch in axes.patches:
        if id(patch) not in bars:
            yield from _of_patch(patch, name(patch))
    for collection in axes.collections:
        yield from _of_collection(collection, name(collection), x_axis, y_axis)
    for image in axes.images:
        yield from _cells(image.get_array())
    yield from _words(axes, x_axis.numeric, y_axis.numeric)


def _words(axes: Any, x_numeric: bool, y_numeric: bool) -> Iterator[Mark]:
    for part, text in (("title", axes.get_title()), ("x label", axes.get_xlabel()), ("y label", axes.get_ylabel())):
        if text:
            yield part, text, None, None, None, None
    pie = any(type(patch).__name__ == "Wedge" for patch in axes.patches)  # it has texts and limits of its own
    for text in [] if pie else axes.texts:
        yield "text", text.get_text(), None, None, None, None
    for part, scale in (("x scale", axes.get_xscale()), ("y scale", axes.get_yscale())):
        if scale != _LINEAR:
            yield part, scale, None, None, None, None
    for part, chosen, limits in (  # pandas sets those of categories and dates by itself
        ("x limits", x_numeric and not axes.get_autoscalex_on(), axes.get_xlim()),
        ("y limits", y_numeric and not axes.get_autoscaley_on(), axes.get_ylim()),
    ):
        if chosen and not pie:
            yield part, None, None, float(limits[0]), float(limits[1]), None


def _of_line(line: Any, name: str | None, x_axis: "_Scale", y_axis: "_Scale") -> Iterator[Mark]:
    xs, ys = (list(np.ravel(np.asarray(line_data))) for line_data in line.get_data(orig=True))
    points = [(x_axis.at(x), y_axis.at(y)) for x, y in zip(xs, ys, strict=False)]
    if str(line.get_linestyle()) in ("None", "", " "):
        yield from (("point", name, None, x, y, None) for x, y in points)
        return
    with_numbers = line.get_xdata(orig=False)
    if len(with_numbers) > 1 and np.all(np.diff(np.asarray(with_numbers, dtype=float)) < 0):
        points.reverse()  # drawn from right to left, it is the same line
    yield from (("line", name, place, x, y, None) for place, (x, y) in enumerate(points))


def _of_bars(container: Any, name: str | None, x_axis: "_Scale", y_axis: "_Scale") -> Iterator[Mark]:
    lying = container.orientation == "horizontal"
    for patch in container.patches:
        length = float(patch.get_width() if lying else patch.get_height())
        if lying:
            yield "horizontal bar", name, None, length, y_axis.near(patch.get_y() + patch.get_height() / 2), None
        else:
            yield "bar", name, None, x_axis.near(patch.get_x() + patch.get_width() / 2), length, None


def _of_patch(patch: Any, name: str | None) -> Iterator[Mark]:
    kind = type(patch).__name__
    if kind == "Wedge":
        label = str(patch.get_label())
        share = float(patch.theta2 - patch.theta1) / 360
        yield "wedge", None if label.startswith("_") else label, None, None, share, None
    elif kind in ("Polygon", "StepPatch", "Rectangle"):
        outline = patch.get_path().vertices if kind == "StepPatch" else patch.get_xy()
        corners = np.atleast_2d(np.asarray(outline, dtype=float))
        yield from (("area", name, place, float(x), float(y), None) for place, (x, y) in enumerate(corners))


def _of_collection(collection: Any, name: str | None, x_axis: "_Scale", y_axis: "_Scale") -> Iterator[Mark]:
    kind = type(collection).__name__
    if kind == "PathCollection":
        values = collection.get_array()
        for place, (x, y) in enumerate(np.ma.filled(collection.get_offsets(), np.nan)):
            value = None if values is None or np.size(values) <= place else float(np.ravel(values)[place])
            yield "point", name, None, x_axis.at(x), y_axis.at(y), value
    elif kind == "LineCollection":
        for segment in collection.get_segments():
            yield from (("segment", name, place, float(x), float(y), None) for place, (x, y) in enumerate(segment))
    elif kind in ("QuadMesh", "PolyQuadMesh"):
        yield from _cells(collection.get_array())
    elif collection.get_paths():
        for path in collection.get_paths():
            corners = enumerate(path.vertices)
            yield from (("area", name, place, float(x), float(y), None) for place, (x, y) in corners)


def _cells(values: Any) -> Iterator[Mark]:
    table: Any = np.asarray(np.ma.filled(np.ma.asarray(values, dtype=float), np.nan))
    for place, value in np.ndenumerate(np.atleast_2d(table)):
        yield "cell", None, place[2] if len(place) > 2 else None, place[1], place[0], float(value)


class _Scale:
    """Returns what positions on an axis stand for: a category, a date, or a number."""

    def __init__(self, axis: Any) -> None:
        formatter = axis.get_major_formatter()
        kind = type(formatter).__name__
        self._dates = "Date" in kind and "TimeSeries" not in kind
        self._frequency = getattr(axis.axes, "freq", None) if "TimeSeries" in kind else None  # pandas counts periods
        self._labels: list[tuple[float, Any]] = []
        if kind in ("FixedFormatter", "FuncFormatter", "StrCategoryFormatter"):
            places = [float(place) for place in axis.get_major_locator()()]
            texts = formatter.format_ticks(places)
            self._labels = [(place, _label(text)) for place, text in zip(places, texts, strict=True) if text]

    @property
    def numeric(self) -> bool:
        """Whether positions stand for numbers only."""
        return not (self._dates or self._frequency or self._labels)

    def at(self, position: Any) -> Any:
        """Returns what stands exactly at a position."""
        if isinstance(position, str):
            return _label(position)
        if isinstance(position, pd.Period):
            return position.to_timestamp()
        number = float(position) if isinstance(position, int | float | np.integer | np.floating) else None
        return position if number is None else self._read(number, 1e-9)

    def near(self, position: float) -> Any:
        """Returns what stands next to a position, as bars of a group stand beside their label."""
        return self._read(float(position), 0.5)

    def _read(self, number: float, most: float) -> Any:
        found = min(self._labels, key=lambda one: abs(one[0] - number), default=None)
        if found is not None and abs(found[0] - number) < most:
            return found[1]
        if self._frequency is not None:
            return pd.Period(ordinal=round(number), freq=self._frequency).to_timestamp()
        if self._dates:
            return pd.Timestamp(sys.modules["matplotlib.dates"].get_epoch()) + pd.Timedelta(days=number).round("us")
        return number


def _label(text: Any) -> Any:
    """Returns the number or date that a label stands for, else its text."""
    plain = str(text).strip()
    try:
        return float(plain.replace("\N{MINUS SIGN}", "-"))
    except ValueError:
        return pd.Timestamp(plain) if _DATE.fullmatch(plain) else plain
