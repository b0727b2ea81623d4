"""Reads labels of bands alike, whatever their words: `under 18`, `18 to 64` and `65+` as `<18`, `18-64`, `>= 65`."""

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

from eval_pipeline.core.values import value

Cells = Sequence[Any]
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?", re.ASCII)
_RANGE = re.compile(rf"\W*{_NUMBER.pattern}\s*(?:-|–|to|and|until)\s*{_NUMBER.pattern}\W*")
_BELOW = re.compile(r"<|≤|\b(?:under|below|less|fewer|lower|younger|up to|at most|most|until|before)\b", re.IGNORECASE)
_ABOVE = re.compile(
    r">|≥|\+|\b(?:over|above|more|higher|greater|older|at least|least|beyond|from|after)\b", re.IGNORECASE
)
_ENDS = 2


@value
class _Band:
    """A label: the numbers in it, where it is open (below, above, or None), and whether it surely is one of a band."""

    ends: tuple[float, ...]
    open: str | None
    sure: bool


_Bands: TypeAlias = dict[tuple[float, ...], _Band]


def alike(mine: Sequence[Cells], theirs: Sequence[Cells]) -> tuple[list[Cells], list[Cells]] | None:
    """Returns the columns of two tables with the labels of the same bands written alike; None if there are none.

    One column on each side has labels of bands: texts with one or two numbers, by which they differ, of which one at
    least is surely no mere name, such as `<18` or `18-64`. A label that is open below is none that is open above.
    """
    found = []
    for columns in (mine, theirs):
        places = [place for place, cells in enumerate(columns) if _bands(cells)]
        if len(places) != 1:
            return None
        found.append(places[0])
    left, right = _bands(mine[found[0]]), _bands(theirs[found[1]])
    if left.keys() != right.keys() or any({left[ends].open, right[ends].open} == {"below", "above"} for ends in left):
        return None
    return _written(mine, found[0]), _written(theirs, found[1])


def _bands(cells: Cells) -> _Bands:
    """Returns the bands by their numbers; empty if the cells are no labels of bands."""
    if not all(isinstance(cell, str) and _NUMBER.search(cell) for cell in cells):
        return {}
    bands = [_band(cell) for cell in cells]
    told = {band.ends: band for band in bands}
    differ = len(told) == len(bands) and all(1 <= len(ends) <= _ENDS for ends in told)
    return told if differ and any(band.sure for band in bands) else {}


def _band(text: str) -> _Band:
    ends = tuple(float(number.replace(",", "")) for number in _NUMBER.findall(text))
    below, above = _BELOW.search(text), _ABOVE.search(text)
    is_open = len(ends) == 1 and (below is None) != (above is None)
    open_end = ("below" if below else "above") if is_open else None
    return _Band(ends, open_end, is_open or _RANGE.fullmatch(text) is not None)


def _written(columns: Sequence[Cells], place: int) -> list[Cells]:
    return [[str(_band(cell).ends) for cell in cells] if here == place else cells for here, cells in enumerate(columns)]
