"""Draws a series of accuracies as a small SVG line without inline styles."""

from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup

WIDTH, HEIGHT, _MARGIN = 120, 28, 3
_LEAST_SPAN = 0.1
"""The least range of accuracy from bottom to top, so that noise does not look like a fall."""


def sparkline(values: Sequence[float | None], words: str) -> Markup:
    """Draws a line through rates from 0 to 1, with gaps where values are missing.

    Args:
        values: one value per date.
        words: description for people who cannot see it.
    """
    known = [value for value in values if value is not None]
    if not known:
        return Markup("")
    low, high = min(known), max(known)
    spare = max(0.0, _LEAST_SPAN - (high - low)) / 2
    low, high = low - spare, high + spare
    step = (WIDTH - 2 * _MARGIN) / max(1, len(values) - 1)
    points = [
        None
        if value is None
        else (_MARGIN + step * place, _MARGIN + (HEIGHT - 2 * _MARGIN) * (high - value) / (high - low))
        for place, value in enumerate(values)
    ]
    runs = [[point for point in run if point] for there, run in groupby(points, key=bool) if there]
    lines = [" ".join(f"{x:.1f},{y:.1f}" for x, y in run) for run in runs]
    last = runs[-1][-1]
    drawn = Markup("").join(Markup('<polyline points="{}"/>').format(line) for line in lines)
    dot = Markup('<circle cx="{:.1f}" cy="{:.1f}" r="2.5"/>').format(*last)
    return Markup('<svg class="spark" viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}</svg>').format(
        WIDTH, HEIGHT, words, drawn, dot
    )
