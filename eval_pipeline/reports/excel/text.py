"""Texts made fit for a cell: nothing that Excel refuses, reads as a formula or decodes."""

import re

MOST = 32_767
"""UTF-16 units that a cell holds."""

_FORMULA = ("=", "+", "-", "@", "\t", "\n")
_NEWLINES = re.compile("\r\n?")
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ESCAPE = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")


def cell_text(text: str) -> str:
    """The text as a cell can hold it.

    Control characters go, carriage returns become line ends, `_x0041_`, which Excel would show as `A`, is escaped, and
    what is too long is cut with a note at its end.
    """
    text = _ILLEGAL.sub("", _NEWLINES.sub("\n", text))
    text = _ESCAPE.sub("_x005F_", text)
    if len(text) <= MOST // 2:
        return text
    units = _units(text)
    return text if units <= MOST else _cut(text, units)


def looks_like_formula(text: str) -> bool:
    """Whether a spreadsheet could take the text for a formula once someone edits its cell or saves the sheet as CSV."""
    return text.startswith(_FORMULA)


def _cut(text: str, units: int) -> str:
    note = f" … [cut: {units:,} characters in all; .parquet and .csv hold the whole text]"
    kept = text.encode("utf-16-le")[: 2 * (MOST - len(note))].decode("utf-16-le", "ignore")
    return _without_broken_escape(kept) + note


def _without_broken_escape(text: str) -> str:
    """An escape that was cut in the middle would show; it goes."""
    return re.sub(r"_(?:x(?:0(?:0(?:5F?)?)?)?)?$", "", text)


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
