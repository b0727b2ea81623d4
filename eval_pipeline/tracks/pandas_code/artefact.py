"""Reading a response into code."""

import re
from collections.abc import Mapping

from eval_pipeline.core.model import ErrorClass, Json
from eval_pipeline.core.values import value
from eval_pipeline.tracks.base import ArtefactError
from eval_pipeline.tracks.pandas_code.analysis.syntax import parse
from eval_pipeline.tracks.pandas_code.cases.closed_answers import answers_in

# Responses may be long and hostile: none of these may go over the same text again from each of its lines or characters.
_FENCE = re.compile(
    r"^[ \t]*+(?P<ticks>`{3,}+|~{3,}+)[ \t]*+(?P<word>[\w+-]*+)[^\n]*+\n"
    r"(?P<code>.*?)(?:(?P<end>^[ \t]*(?P=ticks)[ \t]*$)|\Z)",
    re.M | re.S,
)
_PYTHON = frozenset({"", "python", "python3", "py"})
_SETS_RESULT = re.compile(r"^[ \t]*result\b[^=\n]*=(?!=)", re.M)
_STATEMENT = re.compile(
    r"^[ \t]*(?:import |from |result\b|[A-Za-z_][\w.\[\]'\", ]*=(?!=)|[A-Za-z_][\w.]*\(|def |for |with )", re.M
)
_MOST = 200_000


@value
class Code:
    """What a model answered.

    Attributes:
        code: Python; empty where a recorded answer was an answer itself.
        answer: a recorded answer in the form `@name[value]`; None for code.
    """

    code: str
    answer: str | None = None


def parse_code(text: str, *, recorded: bool = False) -> Code:
    """The code in a response: a fenced block, or the whole text where there is no fence and it reads like Python.

    Of several blocks the last one that sets `result` counts, else the last one of Python; one that the response ends
    in, and that does not parse, is cut off and does not count where another stands before it. A recorded answer
    may also be `@name[value]` without any code, as data sets with closed answers have them.

    Raises:
        ArtefactError: the response is empty, too long, or has no code.
    """
    if not text.strip():
        raise ArtefactError(ErrorClass.VALUE, "the response is empty")
    if len(text) > _MOST:
        raise ArtefactError(ErrorClass.VALUE, f"the response has more than {_MOST:,} characters")
    found = [block for block in _FENCE.finditer(text) if block["word"].lower() in _PYTHON]
    blocks = [block["code"] for block in found]
    if blocks:
        if len(blocks) > 1 and found[-1]["end"] is None and parse(blocks[-1]) is None:
            blocks.pop()  # cut off, and a complete one stands before it
        setting = [block for block in blocks if _SETS_RESULT.search(block)]
        return Code((setting or blocks)[-1].strip("\n"))
    if recorded and answers_in(text) and not _SETS_RESULT.search(text):
        return Code("", text.strip())
    if not _STATEMENT.search(text):
        raise ArtefactError(ErrorClass.SYNTAX, "there is no code: expected a block of Python that sets `result`")
    return Code(text.strip("\n"))


def code_json(found: Code) -> Json:
    """The artefact as JSON."""
    return {"code": found.code} if found.answer is None else {"answer": found.answer}


def code_from_json(told: Mapping[str, Json]) -> Code:
    """The artefact that `code_json` wrote."""
    return Code(told.get("code", ""), told.get("answer"))


def fenced(code: str) -> str:
    """Code as a response."""
    return f"```python\n{code.strip()}\n```"
