"""Extracts the code from a response."""

import re
import textwrap
from collections.abc import Mapping

from eval_pipeline.core.model import ErrorClass, Json
from eval_pipeline.core.values import value
from eval_pipeline.tracks.base import ArtefactError
from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import parse
from eval_pipeline_plugins.tracks.pandas_code.cases.closed_answers import answers_in
from eval_pipeline_plugins.tracks.pandas_code.responses.blocks import program_of, sets_result
from eval_pipeline_plugins.tracks.pandas_code.responses.notebook import plain_python

# Responses may be long and hostile: no expression here may scan the same text again from each line or character.
_FENCE = re.compile(
    r"^[ \t]*+(?P<ticks>`{3,}+|~{3,}+)[ \t]*+(?P<word>[\w+-]*+)[^\n]*+\n"
    r"(?P<code>.*?)(?:(?P<end>^[ \t]*(?P=ticks)[ \t]*$)|\Z)",
    re.M | re.S,
)
_PYTHON = frozenset({"", "python", "python3", "py", "ipython", "ipython3", "pycon"})
_STATEMENT = re.compile(
    r"^[ \t]*(?:import |from |result\b|[A-Za-z_][\w.\[\]'\", ]*=(?!=)|[A-Za-z_][\w.]*\(|def |for |with )", re.M
)
_MOST = 200_000


@value
class Code:
    """The answer of a model.

    Attributes:
        code: Python code; empty if a recorded answer was a plain value.
        answer: a recorded answer in the form `@name[value]`; None for code.
        notes: sentences on what of the response is not in the code, or was joined to it.
    """

    code: str
    answer: str | None = None
    notes: tuple[str, ...] = ()


def parse_code(text: str, *, recorded: bool = False) -> Code:
    """Returns the code in a response: a fenced block, or the whole text if there is no fence and it looks like Python.

    Of several blocks, the last one that sets `result` is used, else the last one of Python, with earlier ones that it
    builds on (`blocks.py`). What only a notebook understands is left out (`notebook.py`). A block at the end of the
    response that does not parse was cut off, and is ignored if there is an earlier one. A recorded answer may also be
    `@name[value]` without any code, as in data sets with closed answers.

    Raises:
        ArtefactError: the response is empty, too long, or has no code.
    """
    if not text.strip():
        raise ArtefactError(ErrorClass.VALUE, "the response is empty")
    if len(text) > _MOST:
        raise ArtefactError(ErrorClass.VALUE, f"the response has more than {_MOST:,} characters")
    found = [block for block in _FENCE.finditer(text) if block["word"].lower() in _PYTHON]
    if found:
        read = [plain_python(_outdented(block["code"].strip("\n"))) for block in found]
        if len(read) > 1 and found[-1]["end"] is None and parse(read[-1][0]) is None:
            read.pop()  # it was cut off, and there is a complete one before it
        code, joined = program_of([code for code, _ in read])
        notes = dict.fromkeys(note for _, notes in read for note in notes)
        told = [f"{joined} earlier block{'s' * (joined > 1)} of code on which the last one builds"] if joined else []
        return Code(code, notes=(*notes, *told))
    if recorded and answers_in(text) and not sets_result(text):
        return Code("", text.strip())
    code, left_out = plain_python(_outdented(text.strip("\n")))
    if not _STATEMENT.search(code):
        raise ArtefactError(ErrorClass.SYNTAX, "there is no code: expected a block of Python that sets `result`")
    return Code(code, notes=left_out)


def _outdented(code: str) -> str:
    """Returns code without an indentation that all its lines share, e.g. that of a list in which its block stands."""
    less = textwrap.dedent(code)
    return code if less == code or parse(less) is None else less


def code_json(found: Code) -> Json:
    """Returns the artefact as JSON."""
    told: dict[str, Json] = {"code": found.code} if found.answer is None else {"answer": found.answer}
    return told | ({"notes": list(found.notes)} if found.notes else {})


def code_from_json(told: Mapping[str, Json]) -> Code:
    """Reads an artefact that `code_json` wrote."""
    return Code(told.get("code", ""), told.get("answer"), tuple(told.get("notes", ())))


def fenced(code: str) -> str:
    """Returns code in the form of a response."""
    return f"```python\n{code.strip()}\n```"
