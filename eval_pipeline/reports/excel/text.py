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
    escaped = _ESCAPE.sub("_x005F_", text)
    if len(escaped) <= MOST // 2 or _units(escaped) <= MOST:
        return escaped
    note = f" … [cut: {_units(text):,} characters in all; .parquet and .csv hold the whole text]"
    room = MOST - len(note)
    if escaped != text:
        room //= 2  # escaping makes a text at most twice as long
    kept = text.encode("utf-16-le")[: 2 * room].decode("utf-16-le", "ignore")
    return _ESCAPE.sub("_x005F_", kept) + note


def looks_like_formula(text: str) -> bool:
    """Whether a spreadsheet could take the text for a formula once someone edits its cell or saves the sheet as CSV."""
    return text.startswith(_FORMULA)


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
