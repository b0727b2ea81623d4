"""Accuracy over dates: a line with intervals for each series, and what is known of each date."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby

from eval_pipeline.reports.charts.svg.drawing import (
    SHAPES,
    WIDTH,
    Scale,
    element,
    fitted,
    line,
    mark,
    percent,
    picture,
    rate_ticks,
    shape,
    text,
    width_of,
)

MOST_SERIES = SHAPES
_LEFT, _RIGHT, _TOP, _PLOT = 44.0, 6.0, 10.0, 140.0
_AXIS, _NAME = 22.0, 18.0
_APART, _BETWEEN_DATES = 5.0, 56.0
_HATCH, _HATCH_STEP = 7.0, 4.0
_MOST_APART = 12
"""With more dates, markers are small and intervals a band."""
_SMALL = 0.6
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


@dataclass(frozen=True, slots=True)
class DatePoint:
    """A rate on a date.

    Attributes:
        day: the date of the evaluation.
        value, low, high: the rate, 0..1, and its 95% interval; None if unknown.
        loss: whether it is significantly worse than the date before.
        broken: what changed since the date before, so that the two are not compared; empty for nothing.
        compared: whether it was compared with the date before.
        words: everything about the point in a sentence.
        href: address of what is behind it; empty for none.
    """

    day: date
    value: float | None
    low: float | None = None
    high: float | None = None
    loss: bool = False
    broken: str = ""
    compared: bool = True
    words: str = ""
    href: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """A line of the chart.

    Attributes:
        name: what the points belong to.
        points: oldest first.
        text: its newest figure, beside the name in the legend.
        href: address of what is behind the newest point; empty for none.
    """

    name: str
    points: Sequence[DatePoint]
    text: str = ""
    href: str = ""


def series_chart(series: Sequence[Series], words: str) -> str:
    """Draws rates over dates.

    A ring marks a loss, a dotted line a date from which something else is compared, hatching what was not compared.

    Args:
        series: at most `MOST_SERIES`; at least one has a point.
        words: description for people who cannot see it.
    """
    points = [point for found in series for point in found.points]
    days = sorted({point.day for point in points})
    found = rate_ticks([end for p in points for end in (p.value, p.low, p.high) if end is not None])
    bottom = _TOP + _PLOT
    up = Scale(found[0], found[-1], bottom, _TOP)
    spare = _APART * len(series)
    along = _along(days, Scale(0, 1, _LEFT + spare, WIDTH - _RIGHT - spare))
    marks = [*_grid(found, up), *_dates(days, along, bottom)]
    for place, one in enumerate(series):
        shift = _APART * (place - (len(series) - 1) / 2)
        marks += _line(one, place, up, along, shift)
    for place, one in enumerate(series):
        marks.append(_legend(one, place, bottom + _AXIS + _NAME * (place + 0.8)))
    return picture(bottom + _AXIS + _NAME * len(series) + 4, words, marks)


def _along(days: Sequence[date], across: Scale) -> dict[date, float]:
    if len(days) == 1:
        return {days[0]: (across.start + across.end) / 2}
    whole = (days[-1] - days[0]).days
    return {day: across((day - days[0]).days / whole) for day in days}


def _grid(found: Sequence[float], up: Scale) -> Iterator[str]:
    for tick in found:
        yield line(_LEFT, up(tick), WIDTH - _RIGHT, up(tick), "grid")
        yield text(_LEFT - 6, up(tick) + 4, percent(tick), "tick", "end")


def _dates(days: Sequence[date], along: dict[date, float], bottom: float) -> Iterator[str]:
    """Yields as many dates as have room, from the newest back; the first takes the place of one that is too near."""
    one_year = days[0].year == days[-1].year
    free = WIDTH
    for day in reversed(days):
        name = f"{day.day} {_MONTHS[day.month - 1]}" if one_year else day.isoformat()
        half = width_of(name) / 2
        x = min(max(along[day], half), WIDTH - half)
        if x + half > free:
            continue
        free = x - max(half + 8, _BETWEEN_DATES - half)
        yield line(along[day], bottom, along[day], bottom + 3, "axis")
        yield text(x, bottom + 15, name, "tick", "middle")


def _line(one: Series, place: int, up: Scale, along: dict[date, float], shift: float) -> Iterator[str]:
    dense = len(along) > _MOST_APART
    drawn = [(point, along[point.day] + shift, up(point.value)) for point in one.points if point.value is not None]
    group, grouped = 0, []
    for point, x, _ in drawn:
        group += bool(point.broken) or not point.compared
        grouped.append((group, point, x))
    for _, found in groupby(grouped, key=lambda each: each[0]):
        run = [(point, x) for _, point, x in found]
        if dense:
            yield _band(run, f"band s{place}", up)
        if len(run) > 1:
            corners = " ".join(f"{x:.1f},{up(point.value or 0.0):.1f}" for point, x in run)
            yield element("polyline", f"line s{place}", points=corners)
    for point, x, y in drawn:
        yield _point(point, x, y, up, place, dense=dense)


def _band(run: Sequence[tuple[DatePoint, float]], kind: str, up: Scale) -> str:
    """Returns the intervals of a run as one band; whiskers that are near each other are a thicket."""
    known = [(x, up(p.low), up(p.high)) for p, x in run if p.low is not None and p.high is not None]
    around = [(x, high) for x, _, high in known] + [(x, low) for x, low, _ in reversed(known)]
    return element("polygon", kind, points=" ".join(f"{x:.1f},{y:.1f}" for x, y in around)) if len(known) > 1 else ""


def _point(point: DatePoint, x: float, y: float, up: Scale, place: int, *, dense: bool) -> str:
    colour, marks = f"s{place}", []
    if point.broken:
        marks.append(line(x, up.end, x, up.start, f"break {colour}"))
    if not dense and point.low is not None and point.high is not None:
        marks.append(line(x, up(point.low), x, up(point.high), f"whisker {colour}"))
    if not point.compared:
        low, high = (y if end is None else up(end) for end in (point.low, point.high))
        marks += _hatched(x, min(high, y - _HATCH), max(low, y + _HATCH))
    kind = f"dot {colour}" if point.compared else f"dot open {colour}"
    marks.append(shape(x, y, kind, place, _SMALL if dense else 1.0))
    if point.loss:
        marks.append(element("circle", "loss", cx=x, cy=y, r=8.5))
    # What a finger can hit is larger than what is seen.
    marks.append(element("circle", "target", cx=x, cy=y, r=5 if dense else 11))
    return mark("".join(marks), point.words, point.href)


def _hatched(x: float, top: float, bottom: float) -> Iterator[str]:
    """Yields strokes over an interval; a pattern would need an id that is unique on the page."""
    y = top + _HATCH_STEP / 2
    while y < bottom:
        yield line(x - _HATCH, y + _HATCH_STEP / 2, x + _HATCH, y - _HATCH_STEP / 2, "hatch")
        y += _HATCH_STEP


def _legend(one: Series, place: int, y: float) -> str:
    room = WIDTH - 20 - _RIGHT - width_of(one.text) - 8
    inner = [
        shape(8, y - 4, f"dot s{place}", place),
        text(20, y, fitted(one.name, room), "name"),
        text(WIDTH - _RIGHT, y, one.text, "figure", "end") if one.text else "",
    ]
    return mark("".join(inner), f"{one.name}: {one.text}" if one.text else one.name, one.href)
