"""Reads labels of bands alike, whatever their words: `under 18`, `18 to 64` and `65+` as `<18`, `18-64`, `>= 65`."""

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

from eval_pipeline.core.values import value

Cells = Sequence[Any]
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?", re.ASCII)
_MINUS = "[-−–]"
_SIGNED = re.compile(
    rf"(?P<minus>(?:^\D*(?<!\w)|(?:\b(?:to|and|until|than)|[<>≤≥=,–-])\s*){_MINUS})?"
    rf"(?P<number>{_NUMBER.pattern})(?:(?P<factor>[kKM])\b)?"
)
"""A minus before the first number is its sign, as in `<-10`; later only where the range has another word or dash."""
_RANGE = re.compile(rf"\W*{_NUMBER.pattern}\s*(?:-|–|to|and|until)\s*{_MINUS}?{_NUMBER.pattern}\W*")
_SIDE = re.compile(
    r"""(?P<turned>\b(?:no|not)\s+)?(?P<within>\b(?:or|and)\s+)?(?:
      (?P<below><=?|≤|\b(?:under|below|less|fewer|lower|younger|smaller|up\ to|at\ most|most|max(?:imum)?
        |until|before)\b)
      |>=?|≥|\+|\b(?:over|above|more|higher|greater|larger|older|exceed(?:s|ing)?
        |at\ least|least|beyond|from|after)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
"""On which side a band is open; `no more than 30` is open below."""
_WITHIN = re.compile(r"[=≤≥+]|\b(?:or|and|up to|most|max|maximum|least|from)\b", re.IGNORECASE)
"""Says that the number itself is in the band."""
_WORD = re.compile(r"[^\W\d_]+|[%$€£°]")
_OF_BANDS = frozenset({"to", "and", "or", "until", "than", "between", "of", "the"})
_ENDS = 2


@value
class _Band:
    """A label.

    Attributes:
        ends: the numbers in it.
        open: where it is open (below, above), and whether the number itself is in it; None if both ends are told.
        words: what it says beside that, such as a unit.
        sure: whether it surely is one of a band.
    """

    ends: tuple[float, ...]
    open: tuple[str, bool] | None
    words: frozenset[str]
    sure: bool


_Bands: TypeAlias = dict[tuple[float, ...], _Band]


def alike(mine: Sequence[Cells], theirs: Sequence[Cells]) -> tuple[list[Cells], list[Cells]] | None:
    """Returns the columns of two tables with the labels of the same bands written alike; None if there are none.

    One column on each side has labels of bands: texts with one or two numbers, by which they differ, of which one at
    least is surely no mere name, such as `<18` or `18-64`. Labels of a band are open on the same side, and have or lack
    the number itself; words beside that are the same, or are one unit that the other table leaves out.
    """
    found = []
    for columns in (mine, theirs):
        places = [place for place, cells in enumerate(columns) if _bands(cells)]
        if len(places) != 1:
            return None
        found.append(places[0])
    left, right = _bands(mine[found[0]]), _bands(theirs[found[1]])
    if left.keys() != right.keys() or any(left[ends].open != right[ends].open for ends in left):
        return None
    units = {band.words for side in (left, right) for band in side.values() if band.words}
    if len(units) > 1 and any(left[ends].words != right[ends].words for ends in left):
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
    ends = tuple(_number(found) for found in _SIGNED.finditer(text))
    words = {word.casefold() for word in _WORD.findall(_SIDE.sub(" ", _SIGNED.sub(" ", text)))} - _OF_BANDS
    sides = {_open(found) for found in _SIDE.finditer(text)}
    if len(ends) == 1 and len(sides) == 1:
        return _Band(ends, sides.pop(), frozenset(words), sure=True)
    return _Band(ends, None, frozenset(words), _RANGE.fullmatch(text) is not None)


def _number(found: re.Match[str]) -> float:
    factor = {"k": 1e3, "K": 1e3, "M": 1e6}.get(found["factor"], 1.0)
    return float(found["number"].replace(",", "")) * (-factor if found["minus"] else factor) or 0.0


def _open(found: re.Match[str]) -> tuple[str, bool]:
    is_turned, is_within = bool(found["turned"]), _WITHIN.search(found[0]) is not None
    return "below" if bool(found["below"]) != is_turned else "above", is_within != is_turned


def _written(columns: Sequence[Cells], place: int) -> list[Cells]:
    return [[str(_band(cell).ends) for cell in cells] if here == place else cells for here, cells in enumerate(columns)]
