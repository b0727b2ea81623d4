"""Errors a person can act on: one sentence each, with the place where it went wrong."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_MOST_FILE, _MOST_FIELD, _MOST_MESSAGE = 4_096, 120, 600
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class EvalError(Exception):
    """Anything that the user can mend; the message is one sentence and is shown without a trace.

    Attributes:
        example: of what a model answered, for the terminal only: what Dagster keeps of its runs holds no responses.
    """

    example: str = ""


class UsageError(EvalError):
    """The request itself cannot be carried out (unknown name, contradicting options)."""


class MissingExtraError(EvalError):
    """An optional package is needed; the message names the extra that installs it."""


class StoreError(EvalError):
    """A file of the record, the journal or the published store cannot be read or written; the message names it."""


class DamagedFileError(StoreError):
    """A file does not hold what was written to it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in an input file.

    Attributes:
        file: path of the file, as the user named it.
        line: 1-based line, or None where the file could not be read at all.
        field: dotted path of the field, empty for the whole entry.
        message: what was found and what was expected; made one line of bearable length, as it may quote the file.
    """

    file: str
    line: int | None
    field: str
    message: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "file", _bearable(self.file, _MOST_FILE))
        object.__setattr__(self, "field", _bearable(self.field, _MOST_FIELD))
        object.__setattr__(self, "message", _bearable(self.message, _MOST_MESSAGE))

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.field}: {self.message}" if self.field else f"{place}: {self.message}"


class InputError(EvalError):
    """One or more input files are wrong; every problem found is listed."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[type["InputError"], tuple[tuple[Problem, ...]]]:
        return (InputError, (self.problems,))


def _bearable(text: str, most: int) -> str:
    """The text in one line, shortened in its middle; what a terminal would obey, or cannot print, as escapes."""
    if len(text) > most:
        text = f"{text[: most // 2]} … {text[-most // 4 :]}"
    if text.isprintable():
        return text
    text = " ".join(text.split())
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
