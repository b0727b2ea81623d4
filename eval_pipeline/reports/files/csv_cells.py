"""Makes texts written by models safe for spreadsheets that open a CSV file.

Source: OWASP, "CSV Injection": a cell that begins like a formula gets an apostrophe in front and is quoted.
"""

import re

import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.core.shown import UNSEEN, visible_text

# Characters that a spreadsheet may read as the start of a formula, including the full-width forms.
_FORMULA = re.compile("[=+\\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,]*(e[+-]?[0-9]+)?%?", re.IGNORECASE)
_SUSPECT = f"^[=+\\-@\t\r\n＝＋－＠]|[{UNSEEN}]"


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


def harmless_text(text: str) -> str:
    r"""Returns the text made safe for a cell: control characters as escapes (`\x1b`), no formulas; numbers are kept."""
    shown = visible_text(text)
    return f"'{shown}" if _FORMULA.match(shown) and not _NUMBER.fullmatch(shown) else shown
