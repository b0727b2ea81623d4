"""Charts of points in a plane: cost against accuracy, and accuracy by level of complexity."""

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

_LEFT, _RIGHT, _TOP, _PLOT, _BOTTOM = 44.0, 14.0, 10.0, 156.0, 38.0
_APART, _DOT, _GAP = 13.0, 4.0, 9.0
_ASIDE = (-9.0, 17.0, -20.0, 28.0)
"""Where else a name may stand: its base line below the point."""
_MOST_NAME = 150.0
_MOST_LEVELS = 10
_SMALL = 0.6
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class CostPoint:
    """What one costs, and how often it is right.

    Attributes:
        name: whose cost it is.
        cost: from 0, in the unit of the axis.
        value, low, high: its accuracy, 0..1, and the 95% interval; None if there is no interval.
        group: those of one group are compared with each other, and have a front of their own.
        on_front: whether no other of its group is both cheaper and more accurate.
        words: everything about the point in a sentence.
        href: address of what is behind it; empty for none.
    """

    name: str
    cost: float
    value: float
    low: float | None = None
    high: float | None = None
    group: str = ""
    on_front: bool = False
    words: str = ""
    href: str = ""


@dataclass(frozen=True, slots=True)
class LevelPoint:
    """Accuracy at a level of complexity; `words` and `href` as of `CostPoint`, unknown numbers are None.

    `fitted` is the curve at that level from which the ceiling is read. `few` is the number of turns of a level that has
    too few to say much: its mark is smaller, with that number.
    """

    level: float
    value: float | None
    low: float | None = None
    high: float | None = None
    fitted: float | None = None
    words: str = ""
    href: str = ""
    few: int | None = None


@dataclass(frozen=True, slots=True)
class CeilingMark:
    """The level up to which accuracy stays above a threshold; `level`, `low` and `high` are None if unknown."""

    threshold: float
    level: float | None = None
    low: float | None = None
    high: float | None = None


def cost_chart(points: Sequence[CostPoint], unit: str, words: str, dollars: bool = False) -> str:
    """Draws cost against accuracy; a line joins the front of each group.

    Args:
        points: at least one.
        unit: what the cost is in, below the axis.
        words: description for people who cannot see it.
        dollars: whether the cost is in dollars.
    """
    costs = ticks(0, max(point.cost for point in points) or 1.0, 4)
    along = Scale(0, costs[-1], _LEFT, WIDTH - _RIGHT)
    up, marks = _rates([end for p in points for end in (p.value, p.low, p.high) if end is not None])
    for tick in costs:
        name = shown.given(tick, "usd" if dollars else "tokens")
        half = width_of(name) / 2
        marks.append(text(min(along(tick), WIDTH - half), _TOP + _PLOT + 15, name, "tick", "middle"))
        marks.append(line(along(tick), _TOP + _PLOT, along(tick), _TOP + _PLOT + 3, "axis"))
    marks.append(text(WIDTH - _RIGHT, _TOP + _PLOT + 31, unit, "tick", "end"))
    marks += _fronts(points, along, up)
    places = [(along(point.cost), up(point.value)) for point in points]
    for point, (x, y), name in zip(points, places, _names(points, places, up), strict=True):
        dot = f"dot {'s0' if point.on_front else 'same'}"
        marks.append(_at(point, x, y, up, dot, name))
    return picture(_TOP + _PLOT + _BOTTOM, words, marks)


def level_chart(points: Sequence[LevelPoint], ceiling: CeilingMark, axis: str, words: str) -> str:
    """Draws accuracy by level of complexity with the threshold and the ceiling that follows from it.

    Args:
        points: by level; at least one. A line joins them, or runs along the fitted curve where that is known.
        ceiling: the threshold, and the highest level that stays above it.
        axis: what the levels measure, below the axis.
        words: description for people who cannot see it.
    """
    levels = [point.level for point in points]
    low, high = min(levels), max(levels)
    along = Scale(low - 0.5, high + 0.5, _LEFT, WIDTH - _RIGHT)
    up, marks = _rates([0.0, 1.0])
    side = _side(points, ceiling.threshold)
    marks += _bounds(ceiling, along, up, side)
    step = max(1, -(-len(levels) // _MOST_LEVELS))
    for level in sorted(levels)[::step]:
        marks.append(text(along(level), _TOP + _PLOT + 15, shown.given(level, "count"), "tick", "middle"))
    marks.append(text(WIDTH - _RIGHT, _TOP + _PLOT + 31, fitted(axis, WIDTH - _RIGHT), "tick", "end"))
    known = [(point, along(point.level), up(point.value)) for point in points if point.value is not None]
    curve = [(along(point.level), up(point.fitted)) for point in points if point.fitted is not None]
    joined = curve or [(x, y) for _, x, y in known]
    if len(joined) > 1:
        marks.append(element("polyline", "line s0", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in joined)))
    taken: list[Box] = [(x - _DOT, y - _DOT, x + _DOT, y + _DOT) for _, x, y in known]
    wide, base = width_of(percent(ceiling.threshold)), up(ceiling.threshold) - 4
    left = along.start + 4 if side == "start" else along.end - wide
    taken.append((left, base - _APART + 3, left + wide, base + 3))
    marks += [
        _at(point, x, y, up, "dot s0", _few(point, x, y, taken), 1.0 if point.few is None else _SMALL)
        for point, x, y in known
    ]
    return picture(_TOP + _PLOT + _BOTTOM, words, marks)


def _rates(values: Sequence[float]) -> tuple[Scale, list[str]]:
    found = rate_ticks(values)
    up = Scale(found[0], found[-1], _TOP + _PLOT, _TOP)
    marks = []
    for tick in found:
        marks.append(line(_LEFT, up(tick), WIDTH - _RIGHT, up(tick), "grid"))
        marks.append(text(_LEFT - 6, up(tick) + 4, percent(tick), "tick", "end"))
    return up, marks


def _fronts(points: Sequence[CostPoint], along: Scale, up: Scale) -> Iterator[str]:
    """Yields a stair through the front of each group: what is to be had for a cost is the best of what is cheaper."""
    for group in sorted({point.group for point in points}):
        front = sorted((p for p in points if p.on_front and p.group == group), key=lambda p: (p.cost, p.value))
        corners: list[str] = []
        for before, point in zip([None, *front], front, strict=False):
            if before is not None:
                corners.append(f"{along(point.cost):.1f},{up(before.value):.1f}")
            corners.append(f"{along(point.cost):.1f},{up(point.value):.1f}")
        if len(corners) > 1:
            yield element("polyline", "front", points=" ".join(corners))


def _names(points: Sequence[CostPoint], places: Sequence[tuple[float, float]], up: Scale) -> list[str]:
    """Returns the name of each point as markup, beside it where nothing else is, intervals too; empty without room.

    Those on the front come first, as they are what people look for.
    """
    taken = [(x - _DOT, y - _DOT, x + _DOT, y + _DOT) for x, y in places]
    taken += [
        (x - 1, up(point.high), x + 1, up(point.low))
        for point, (x, _) in zip(points, places, strict=True)
        if point.low is not None and point.high is not None
    ]
    found = [""] * len(points)
    for place in sorted(range(len(points)), key=lambda place: (not points[place].on_front, places[place][1])):
        x, y = places[place]
        name = fitted(points[place].name, _MOST_NAME)
        wide = width_of(name)
        for right, down in (
            (x < WIDTH / 2, 4.0),
            (x >= WIDTH / 2, 4.0),
            *((side, d) for d in _ASIDE for side in (True, False)),
        ):
            left = x + _GAP if right else x - _GAP - wide
            box = (left, y + down - _APART + 3, left + wide, y + down + 3)
            inside = left >= _LEFT and box[2] <= WIDTH and box[1] >= 0 and box[3] <= up.start + 3
            if inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                found[place] = text(left if right else left + wide, y + down, name, "name", "" if right else "end")
                break
    return found


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _at(
    point: CostPoint | LevelPoint, x: float, y: float, up: Scale, kind: str, name: str = "", size: float = 1
) -> str:
    marks = []
    if point.low is not None and point.high is not None:
        marks.append(line(x, up(point.low), x, up(point.high), kind.replace("dot", "whisker")))
    marks += [shape(x, y, kind, size=size), name, element("circle", "target", cx=x, cy=y, r=11)]
    return mark("".join(marks), point.words, point.href)


def _few(point: LevelPoint, x: float, y: float, taken: list[Box]) -> str:
    """Returns the number of turns beside a point that has few; at the left where the chart ends at the right.

    Empty where it would cover a point or another text, as a reader finds it at the point, too; `taken` grows.
    """
    if point.few is None:
        return ""
    right = x < WIDTH - 50
    down = min(max(y + 4, _TOP + _APART), _TOP + _PLOT - 4)
    told = f"n={point.few:,}"
    left = x + 7 if right else x - 7 - width_of(told)
    box = (left, down - _APART + 3, left + width_of(told), down + 3)
    if any(_overlap(box, other) for other in taken):
        return ""
    taken.append(box)
    return text(x + 7 if right else x - 7, down, told, "tick", "" if right else "end")


def _side(points: Sequence[LevelPoint], threshold: float) -> str:
    """Returns at which end of its line the threshold's name is farther from a point: `start` or `end`."""
    first, last = (1.0 if one.value is None else abs(one.value - threshold) for one in (points[0], points[-1]))
    return "start" if first > last else "end"


def _bounds(ceiling: CeilingMark, along: Scale, up: Scale, side: str) -> Iterator[str]:
    """Yields the threshold as a dashed line with its name, and the ceiling with its interval as a shaded band."""
    if ceiling.level is not None:
        low = along.low if ceiling.low is None else ceiling.low
        high = along.high if ceiling.high is None else ceiling.high
        yield element(
            "rect", "band", x=along(low), y=up.end, width=max(0.5, along(high) - along(low)), height=up.start - up.end
        )
        yield line(along(ceiling.level), up.end, along(ceiling.level), up.start, "ceiling")
    yield line(along.start, up(ceiling.threshold), along.end, up(ceiling.threshold), "threshold")
    x = along.start + 4 if side == "start" else along.end
    yield text(x, up(ceiling.threshold) - 4, percent(ceiling.threshold), "tick worse", side)
