"""The pieces that all charts consist of: elements, marks that lead somewhere, scales and their ticks."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from math import ceil, floor, log10

from eval_pipeline.core.shown import given, visible_text

WIDTH = 320.0
"""Width of a chart in its own units. It is about that of a phone in pixels, so that text stays readable there."""
TEXT = 12.0
"""Height of text, in the same units; `chart.css` sets the same."""
_PER_CHARACTER, _PER_WIDE = 0.56 * TEXT, 1.05 * TEXT
_STEPS = (1, 2, 2.5, 5, 10)
_LEAST = 1e-300
_DARK = re.compile(r"@media screen.*?^}\n", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"(--[\w-]+): (#\w+)")
_BY_NAME = re.compile(r"var\((--[\w-]+)\)")
_SHAPES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "M-3.6-3.6h7.2v7.2h-7.2z",
    "M0-5.2 5.2 0 0 5.2-5.2 0z",
    "M0-4.8 5 3.8H-5z",
    "M0 4.8 5-3.8H-5z",
)
SHAPES = len(_SHAPES)
"""How many series can be told apart without colours."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values to positions.

    Attributes:
        low, high: the values at `start` and `end`; they differ.
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Returns the position of a value; what is outside stays at the edge."""
        share = min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))
        return self.start + share * (self.end - self.start)


@cache
def stylesheet() -> str:
    """Returns the style that charts need on a page."""
    return files(__package__).joinpath("chart.css").read_text(encoding="utf-8")


@cache
def light_stylesheet() -> str:
    """Returns the style for programs that know neither colours by name (`var`) nor dark screens."""
    plain = _DARK.sub("", stylesheet())
    colours = dict(_NAMED.findall(plain))
    return _BY_NAME.sub(lambda name: colours[name[1]], plain)


def element(name: str, kind: str = "", inner: str = "", **attributes: float | str) -> str:
    """Returns an element of SVG.

    Args:
        name: name of the element.
        kind: its classes; empty for none.
        inner: markup inside of it.
        attributes: `_` in a name stands for `-`.
    """
    named = {"class": kind} if kind else {}
    told = "".join(
        f' {key.replace("_", "-")}="{_plain(value)}"' for key, value in {**named, **attributes}.items() if value != ""
    )
    return f"<{name}{told}>{inner}</{name}>" if inner else f"<{name}{told}/>"


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "") -> str:
    """Returns a line of text; `anchor` is `middle` or `end` if `x` is not where it begins."""
    return element("text", kind, escaped(content), x=x, y=y, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Returns a straight line; `kind` is its class in the style sheet, as everywhere here."""
    return element("line", kind, x1=x1, y1=y1, x2=x2, y2=y2)


def shape(x: float, y: float, kind: str, place: int = 0, size: float = 1.0) -> str:
    """Returns the marker of the series number `place`, centred at a point; a `size` below 1 makes it smaller."""
    smaller = "" if size == 1 else f" scale({_plain(size)})"
    return element("path", kind, d=_SHAPES[place % SHAPES], transform=f"translate({_plain(x)} {_plain(y)}){smaller}")


def mark(inner: str, words: str, href: str = "") -> str:
    """Returns marks that `words` describe and that lead to a page, if there is one."""
    told = element("title", inner=escaped(words))
    if not href:
        return element("g", inner=told + inner)
    # A label beside text that is seen would have to repeat it word by word; the title tells the same.
    return element("a", inner=told + inner, href=href, aria_label="" if "<text" in inner else words)


def picture(height: float, words: str, marks: Sequence[str], width: float = WIDTH) -> str:
    """Returns a whole chart.

    Args:
        height: in the units of `width`.
        words: what can be read from it, for people who cannot see it.
        marks: its elements from back to front.
        width: in units of about a pixel on a phone.
    """
    inner = "".join(marks)
    # What is in an image is hidden from screen readers, so one with links is a group.
    role = "group" if "<a " in inner else "img"
    box = f"0 0 {_plain(width)} {_plain(height)}"
    return element("svg", "chart", inner, xmlns="http://www.w3.org/2000/svg", viewBox=box, role=role, aria_label=words)


def width_of(content: str) -> float:
    """Returns about how wide a text is; rather too wide than too narrow."""
    return sum(_PER_WIDE if ord(one) > 0x2E7F or one in "MW@%—…" else _PER_CHARACTER for one in content)


def fitted(content: str, room: float) -> str:
    """Returns a text that is cut with `…` if it is wider than the room."""
    if width_of(content) <= room:
        return content
    found = content
    while found and width_of(found) + _PER_WIDE > room:
        found = found[:-1]
    return f"{found}…"


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Returns round values from at or below `low` to at or above `high`, evenly spaced.

    There are two to about `most` of them. What cannot be told apart gets an axis of its own size.
    """
    if high - low <= max(_LEAST, 1e-9 * abs(low)):
        high = low + (abs(low) if abs(low) > _LEAST else 1.0)
    rough = (high - low) / max(1, most - 1)
    power = 10.0 ** floor(log10(rough))
    step = next(size * power for size in _STEPS if size * power >= rough * (1 - 1e-9))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [float(f"{place * step:.12g}") for place in range(first, last + 1)]


def rate_ticks(values: Sequence[float], least: float = 0.2) -> list[float]:
    """Returns ticks of an axis with rates from 0 to 1, which spans at least `least`."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    spare = max(0.0, least - (high - low)) / 2
    low, high = max(0.0, low - spare), min(1.0, high + spare)
    if high - low < least:
        low, high = max(0.0, high - least), min(1.0, low + least)
    return [tick for tick in ticks(low, high) if -1e-9 <= tick <= 1 + 1e-9]


def percent(rate: float) -> str:
    """Returns a tick of an axis with rates: `87.5%`."""
    return given(rate)


def escaped(content: str) -> str:
    """Returns a text as markup; characters that control terminals or the direction of writing become visible."""
    return escape(visible_text(content))


def _plain(value: float | str) -> str:
    return escaped(value) if isinstance(value, str) else f"{value:.1f}".removesuffix(".0").replace("-0.0", "0")
