"""Reads labels of bands alike, whatever their words: `under 18`, `18 to 64` and `65+` as `<18`, `18-64`, `>= 65`."""

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

from eval_pipeline.core.values import value

Cells = Sequence[Any]
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?", re.ASCII)
_MINUS = "[-−–]"
_SIGNED = re.compile(
    rf"(?P<minus>(?:^\D*(?<!\w)|(?:\b(?:to|and|until|than)|[<>≤≥=,–-])\s*){_MINUS})?(?P<number>{_NUMBER.pattern})"
)
"""A minus before the first number is its sign, as in `<-10`; later only where the range has another word or dash."""
_RANGE = re.compile(rf"\W*{_NUMBER.pattern}\s*(?:-|–|to|and|until)\s*{_MINUS}?{_NUMBER.pattern}\W*")
_SIDE = re.compile(
    r"""(?P<turned>\b(?:no|not)\s+)?(?:
      (?P<below><|≤|\b(?:under|below|less|fewer|lower|younger|smaller|up\ to|at\ most|most|max(?:imum)?|until|before)\b)
      |>|≥|\+|\b(?:over|above|more|higher|greater|larger|older|exceed(?:s|ing)?
        |at\ least|least|beyond|from|after)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
"""On which side a band is open; `no more than 30` is open below."""
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
    ends = tuple(
        float(found["number"].replace(",", "")) * (-1 if found["minus"] else 1) or 0.0
        for found in _SIGNED.finditer(text)
    )
    sides = {"below" if bool(found["below"]) != bool(found["turned"]) else "above" for found in _SIDE.finditer(text)}
    if len(ends) == 1 and len(sides) == 1:
        return _Band(ends, sides.pop(), sure=True)
    return _Band(ends, None, _RANGE.fullmatch(text) is not None)


def _written(columns: Sequence[Cells], place: int) -> list[Cells]:
    return [[str(_band(cell).ends) for cell in cells] if here == place else cells for here, cells in enumerate(columns)]
