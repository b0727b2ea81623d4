"""Errors that the user can act on: each message is one sentence and names the place of the problem."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from eval_pipeline.core.shown import visible_text

_MOST_FILE, _MOST_FIELD, _MOST_MESSAGE = 4_096, 120, 600
_HALVES = re.compile("[\ud800-\udfff]")


class EvalError(Exception):
    """An error that the user can fix. The message is one sentence, shown without a traceback.

    Attributes:
        example: an excerpt of a model's answer, shown on the terminal only. It is kept out of the message because
            Dagster stores messages, and its storage must not hold responses.
    """

    example: str = ""


class UsageError(EvalError):
    """The request cannot be carried out, e.g. an unknown name or contradicting options."""


class EndedEarlyError(EvalError):
    """The user ended something before it was done; the message says what there is of it."""


class MissingExtraError(EvalError):
    """An optional package is missing; the message names the extra that installs it."""


class StoreError(EvalError):
    """A file of the record, the journal or the published store cannot be read or written; the message names it."""


class MissingFileError(StoreError):
    """A file of the record is not there, or no longer: another run may be making its evaluation anew."""


class DamagedFileError(StoreError):
    """A file's contents differ from what was written to it."""


class LockedError(StoreError):
    """Another process holds a lock for longer than one waits."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem in an input file.

    Attributes:
        file: path of the file, as the user gave it.
        line: 1-based line, or None if the file could not be read at all.
        field: dotted path of the field; empty for the whole entry.
        message: what was found and what was expected. It may quote the file, so it is shortened to one line of limited
            length.
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
    """One or more input files are wrong; the message lists every problem found."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[type["InputError"], tuple[tuple[Problem, ...]]]:
        return (InputError, (self.problems,))


def _bearable(text: str, most: int) -> str:
    """Returns the text in one line, shortened in the middle if too long, with control characters escaped."""
    if len(text) > most:
        text = f"{text[: most // 2]} … {text[-most // 4 :]}"
    if text.isprintable():
        return text
    return _HALVES.sub(lambda found: rf"\u{ord(found[0]):x}", visible_text(" ".join(text.split())))
