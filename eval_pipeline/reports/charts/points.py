"""Draws points with their confidence intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eval_pipeline.core import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


@dataclass(frozen=True, slots=True)
class Point:
    """A value at a position, with its 95% interval; unknown numbers are None."""

    x: float
    y: float | None
    low: float | None = None
    high: float | None = None


def draw_points(axes: "Axes", points: Sequence[Point], colour: str, joined: bool, label: str = "") -> None:
    """Draws points with their intervals as whiskers; points without a value are left out.

    If `joined`, a line connects the points in their order.
    """
    known = [(point.x, point.y, point.low, point.high) for point in points if point.y is not None]
    whiskers = [(x, y, low, high) for x, y, low, high in known if low is not None and high is not None]
    if whiskers:
        axes.vlines(
            [x for x, *_ in whiskers], [low for _, _, low, _ in whiskers], [high for *_, high in whiskers],
            color=colour, linewidth=1.2, alpha=0.55,
        )  # fmt: skip
    axes.plot(
        [x for x, *_ in known], [y for _, y, *_ in known], color=colour, marker="o", markersize=5.5, linewidth=1.6,
        linestyle="-" if joined else "none", label=label or None,
    )  # fmt: skip


def percent_axis(axis: "Axis") -> None:
    """Shows an axis from 0 to 1 in percent, with enough decimals to keep the tick labels distinct."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: shown.given(value)))


def points_axis(axis: "Axis") -> None:
    """Shows an axis of differences between rates in percentage points, with a sign and enough decimals."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: shown.given(value, "points")))
