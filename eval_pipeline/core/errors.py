"""Errors a person can act on: one sentence each, with the place where it went wrong."""

from collections.abc import Iterable
from dataclasses import dataclass


class EvalError(Exception):
    """Anything that the user can mend; the message is one sentence and is shown without a trace."""


class UsageError(EvalError):
    """The request itself cannot be carried out (unknown name, contradicting options)."""


class MissingExtraError(EvalError):
    """An optional package is needed; the message names the extra that installs it."""


class StoreError(EvalError):
    """A file of the record, the journal or the published store cannot be read or written; the message names it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in an input file.

    Attributes:
        file: path of the file, as the user named it.
        line: 1-based line, or None where the file could not be read at all.
        field: dotted path of the field, empty for the whole entry.
        message: what was found and what was expected.
    """

    file: str
    line: int | None
    field: str
    message: str

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
