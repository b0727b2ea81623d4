"""Polars as a second dialect: answers get polars frames, while gold stays pandas code on the same tables."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasContext

POLARS = "polars"
PREAMBLE_LINES = 1
_PREAMBLE = "from inside.polars_tables import give_polars as _give; _give(globals())\n"
_ENDING = "\nfrom inside.polars_tables import take_polars as _take; _take(globals())"
_FENCE = "```python\n"


def is_polars(context: "PandasContext") -> bool:
    """Returns whether answers are polars code."""
    return context.options.dialect == POLARS


def answer_code(code: str, context: "PandasContext") -> str:
    """Returns the code of an answer as it is run: in the dialect polars with a line before and after it.

    They make polars frames of the tables, and a pandas value of the result.
    """
    return f"{_PREAMBLE}{code}{_ENDING}" if is_polars(context) else code


def answer_line(line: int | None, context: "PandasContext") -> int | None:
    """Returns the line of an answer, given the line of `answer_code`."""
    return line - PREAMBLE_LINES if line is not None and is_polars(context) else line


def pandas_response(text: str, context: "PandasContext") -> str:
    """Returns a response of pandas code, made from the reference code, as an answer in the suite's dialect."""
    if not is_polars(context):
        return text
    names = [table.name for table in context.tables]
    lines = [f"{name} = {name}.to_pandas()\n" for name in names]
    if len(names) == 1:
        lines.append(f"df = {names[0]}\n")
    return text.replace(_FENCE, _FENCE + "".join(lines), 1)
