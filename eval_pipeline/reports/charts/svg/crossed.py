"""Charts of counts that are crossed with something: bars in parts, and a grid of shares."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval_pipeline.reports.charts.svg.drawing import WIDTH, Scale, element, fitted, mark, picture, text, width_of

_ROW, _EDGE, _LEGEND = 34.0, 12.0, 20.0
_MIDDLE, _BAR = 20.0, 7.0
_CELL, _GAP = 22.0, 1.5
_NARROWEST = 36.0
_NAMES = 112.0


@dataclass(frozen=True, slots=True)
class Stack:
    """A bar in parts.

    Attributes:
        name: what it is of.
        counts: the lengths of its parts, in the order of the legend.
        text: what is told of it at the right.
        words: everything about it in a sentence.
    """

    name: str
    counts: Sequence[int]
    text: str
    words: str


@dataclass(frozen=True, slots=True)
class ShareCell:
    """A cell of a grid: a share from 0 to 1, as people read it, and everything about it in a sentence."""

    share: float
    text: str
    words: str


def stacks_chart(stacks: Sequence[Stack], parts: Sequence[str], words: str) -> str:
    """Draws a row for each bar, below a legend of its parts; `words` describe the chart."""
    longest = max([sum(stack.counts) for stack in stacks], default=0) or 1
    across = Scale(0, longest, 0, WIDTH - _EDGE)
    marks, x, top = [], 0.0, 0.0
    for place, part in enumerate(parts):
        wide = 15 + width_of(part)
        if x and x + wide > WIDTH:
            x, top = 0.0, top + _LEGEND
        marks += [element("rect", f"part s{place}", x=x, y=top + 4, width=10, height=8)]
        marks += [text(x + 15, top + 12, part, "tick")]
        x += wide + 14
    top += _LEGEND
    marks += [_stack(stack, top + place * _ROW, across) for place, stack in enumerate(stacks)]
    return picture(top + len(stacks) * _ROW + 2, words, marks)


def _stack(stack: Stack, top: float, across: Scale) -> str:
    end = WIDTH - _EDGE
    marks = [
        element("rect", "target", x=0, y=top + 2, width=WIDTH, height=_ROW - 2),
        text(0, top + 15, fitted(stack.name, end - width_of(stack.text) - 10), "name"),
        text(end, top + 15, stack.text, "figure", "end"),
    ]
    begin = 0
    for place, count in enumerate(stack.counts):
        if count:
            x = across(begin)
            width = max(1.0, across(begin + count) - x)
            marks.append(element("rect", f"part s{place}", x=x, y=top + _MIDDLE, width=width, height=_BAR))
        begin += count
    return mark("".join(marks), stack.words)


def grid_chart(
    rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[ShareCell | None]], words: str
) -> str:
    """Draws a cell for each row and column, the stronger the larger its share; `words` describe the chart.

    Columns stand below one another in a legend by number where their names would not fit; many columns make it wider.
    """
    wide = max(_NARROWEST, (WIDTH - _NAMES) / max(1, len(columns)))
    width = max(WIDTH, _NAMES + wide * len(columns))
    fits = all(width_of(name) <= wide - 4 for name in columns)
    marks, top = [], 0.0
    if not fits:
        for place, name in enumerate(columns):
            marks.append(text(0, top + 12, fitted(f"{place + 1}  {name}", width), "tick"))
            top += 17.0
        top += 4
    for place, name in enumerate(columns):
        head = name if fits else str(place + 1)
        marks.append(text(_NAMES + (place + 0.5) * wide, top + 12, head, "tick", "middle"))
    top += _LEGEND
    for line, name in enumerate(rows):
        y = top + line * _CELL
        marks.append(text(0, y + 15, fitted(name, _NAMES - 6), "name"))
        for place, cell in enumerate(cells[line]):
            if cell is not None:
                marks.append(_cell(cell, _NAMES + place * wide, y, wide))
    return picture(top + len(rows) * _CELL + 2, words, marks, width)


def _cell(cell: ShareCell, x: float, y: float, wide: float) -> str:
    kinds = {"worse": 1 - cell.share, "better": cell.share}
    layers = "".join(
        element(
            "rect", f"share {kind}", x=x, y=y, width=wide - _GAP, height=_CELL - _GAP, fill_opacity=f"{strong / 2:.2f}"
        )
        for kind, strong in kinds.items()
    )
    label = text(x + (wide - _GAP) / 2, y + 15, cell.text, "figure", "middle")
    return mark(layers + label, cell.words)
