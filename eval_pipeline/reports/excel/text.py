"""Makes texts safe for cells: nothing that Excel rejects, treats as a formula or decodes."""

import re

MOST = 32_767
"""The most UTF-16 units that a cell can hold."""

_FORMULA = ("=", "+", "-", "@", "\t", "\n")
_NEWLINES = re.compile("\r\n?")
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ESCAPE = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")


def cell_text(text: str) -> str:
    """Returns the text in a form that a cell can hold.

    Control characters are removed, and carriage returns become line feeds. Sequences such as `_x0041_`, which Excel
    would show as `A`, are escaped. Text that is too long is cut, with a note at its end.
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
    """Returns whether a spreadsheet could treat the text as a formula after the cell is edited or saved as CSV."""
    return text.startswith(_FORMULA)


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
