"""Makes texts written by models safe for spreadsheets that open a CSV file.

Source: OWASP, "CSV Injection": a cell that begins like a formula gets an apostrophe in front and is quoted.
"""

import re

import pyarrow as pa
import pyarrow.compute as pc

# Characters that a spreadsheet may read as the start of a formula, including the full-width forms.
_FORMULA = re.compile("[=+\\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,]*(e[+-]?[0-9]+)?%?", re.IGNORECASE)
# Only tab and line feed are allowed as control characters; others, such as ESC, could control a terminal.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_SUSPECT = r"^[=+\-@\t\r\n＝＋－＠]|[\x00-\x08\x0b-\x1f\x7f-\x{9f}\x{2028}-\x{202e}\x{2066}-\x{2069}]"


def harmless(table: pa.Table) -> pa.Table:
    """Returns the table with every text made safe by `harmless_text`."""
    for place, field in enumerate(table.schema):
        if not (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)):
            continue
        column = table.column(place)
        suspect = pc.fill_null(pc.match_substring_regex(column, _SUSPECT), False)
        if pc.any(suspect).as_py():
            texts = [None if text is None else harmless_text(text) for text in column.to_pylist()]
            table = table.set_column(place, field.name, pa.array(texts, field.type))
    return table


def visible_text(text: str) -> str:
    r"""Returns the text with control characters (including those that change writing direction) as escapes (`\x1b`)."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def harmless_text(text: str) -> str:
    r"""Returns the text made safe for a cell: control characters as escapes (`\x1b`), no formulas; numbers are kept."""
    shown = visible_text(text)
    return f"'{shown}" if _FORMULA.match(shown) and not _NUMBER.fullmatch(shown) else shown
