"""Charts of rows: values with intervals on a common axis, and parts of a whole on two dates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eval_pipeline.core import shown
from eval_pipeline.reports.charts.svg.drawing import (
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
    ticks,
    width_of,
)

LOSS, GAIN, SAME = "worse", "better", "same"
_ROW, _AXIS, _EDGE = 34.0, 22.0, 12.0
_LEGEND = 20.0
_MIDDLE = 20.0
_LEAST_POINTS = 0.02
_MOST_TICKS = 6


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """A value with its interval.

    Attributes:
        name: what the value is of.
        value, low, high: in the unit of the axis; None if unknown.
        text: the value as people read it.
        state: `LOSS`, `GAIN` or `SAME` of a change; empty for a plain value.
        words: everything about the row in a sentence.
        href: address of what is behind it; empty for none.
    """

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    text: str = ""
    state: str = ""
    words: str = ""
    href: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the whole now, and before.

    Attributes:
        name: what the part is.
        share, before: how much of the whole it is now and was before, 0..1; None if there was nothing before.
        text: how much it is now, as people read it.
        change: how it changed, likewise; empty if it did not.
        grew: whether the change is for the worse.
        words: everything about the part in a sentence.
        href: address of what is behind it; empty for none.
    """

    name: str
    share: float
    before: float | None = None
    text: str = ""
    change: str = ""
    grew: bool = False
    words: str = ""
    href: str = ""


def rate_rows(rows: Sequence[IntervalRow], words: str) -> str:
    """Draws a row for each rate with its interval, on an axis in percent; `words` describe the chart."""
    return _intervals(rows, words, rate_ticks(_ends(rows)), changes=False)


def change_rows(rows: Sequence[IntervalRow], words: str) -> str:
    """Draws a row for each difference of rates with its interval, in points around zero; `words` describe the chart."""
    ends = [-_LEAST_POINTS, _LEAST_POINTS, *_ends(rows)]
    return _intervals(rows, words, ticks(min(ends), max(ends), _MOST_TICKS), changes=True)


def parts_chart(parts: Sequence[Part], now: str, before: str, words: str) -> str:
    """Draws a bar for each part, and a thin one below it for what it was before.

    Args:
        parts: the parts to show, in their order.
        now: what the bars stand for.
        before: what the thin bars stand for; empty if there was nothing.
        words: description for people who cannot see it.
    """
    longest = max([part.share for part in parts] + [part.before or 0.0 for part in parts]) or 1.0
    across = Scale(0, longest, 0, WIDTH - _EDGE)
    marks = list(_key(now, before))
    marks += [_part(part, _LEGEND + place * _ROW, across) for place, part in enumerate(parts)]
    return picture(_LEGEND + len(parts) * _ROW + 2, words, marks)


def _ends(rows: Sequence[IntervalRow]) -> list[float]:
    return [end for row in rows for end in (row.value, row.low, row.high) if end is not None]


def _intervals(rows: Sequence[IntervalRow], words: str, found: Sequence[float], *, changes: bool) -> str:
    across = Scale(found[0], found[-1], _EDGE, WIDTH - _EDGE)
    bottom = len(rows) * _ROW + 6
    marks = []
    for tick in found:
        x = across(tick)
        marks.append(line(x, 4, x, bottom, "zero" if changes and tick == 0 else "grid"))
        name = shown.given(tick, "points") if changes else percent(tick)
        half = width_of(name) / 2
        marks.append(text(min(max(x, half), WIDTH - half), bottom + 14, name, "tick", "middle"))
    marks += [_interval(row, place * _ROW, across) for place, row in enumerate(rows)]
    return picture(bottom + _AXIS, words, marks)


def _interval(row: IntervalRow, top: float, across: Scale) -> str:
    kind, y = row.state or "s0", top + _MIDDLE + 6
    marks = [*_names(row.name, [(row.text, "figure")], top)]
    if row.low is not None and row.high is not None:
        marks.append(line(across(row.low), y, across(row.high), y, f"whisker {kind}"))
    if row.value is not None:
        marks.append(shape(across(row.value), y, f"dot {kind}"))
    return mark(_hit(top) + "".join(marks), row.words, row.href)


def _part(part: Part, top: float, across: Scale) -> str:
    y = top + _MIDDLE
    told = [(part.change, "figure worse" if part.grew else "figure faint"), (part.text, "figure")]
    marks = [*_names(part.name, told, top)]
    marks.append(element("rect", "bar", x=0, y=y, width=max(1.0, across(part.share)), height=6))
    if part.before is not None:
        marks.append(element("rect", "bar before", x=0, y=y + 6.5, width=max(1.0, across(part.before)), height=3))
    return mark(_hit(top) + "".join(marks), part.words, part.href)


def _names(name: str, told: Sequence[tuple[str, str]], top: float) -> Iterator[str]:
    """Yields the name of a row at the left and texts at the right, the last one outermost."""
    end = WIDTH - _EDGE
    for content, kind in reversed(told):
        if content:
            yield text(end, top + 15, content, kind, "end")
            end -= width_of(content) + 10
    yield text(0, top + 15, fitted(name, end), "name")


def _key(now: str, before: str) -> Iterator[str]:
    yield element("rect", "bar", x=0, y=5, width=10, height=6)
    yield text(15, 12, now, "tick")
    if before:
        x = 15 + width_of(now) + 16
        yield element("rect", "bar before", x=x, y=6.5, width=10, height=3)
        yield text(x + 15, 12, before, "tick")


def _hit(top: float) -> str:
    """Returns what a finger can hit: the whole row."""
    return element("rect", "target", x=0, y=top + 2, width=WIDTH, height=_ROW - 2)
