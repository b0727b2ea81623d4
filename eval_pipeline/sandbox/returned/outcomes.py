"""The possible outcomes of a snippet."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from eval_pipeline.core.model import ErrorClass, Json


@dataclass(frozen=True, slots=True)
class SnippetRan:
    """The snippet ran to its end and left a result.

    Attributes:
        result: validated tagged plain data, as `inside/encode.py` writes it; `results.as_pandas` converts it to a
            value.
        stdout: what it printed.
        seconds: CPU time of its process minus that of an idle one, measured from outside.
        peak_bytes: its peak memory minus that of an idle process, measured from outside.
        tier: what confined it, e.g. `bwrap`.
        result_bytes: size of the result as JSON.
    """

    result: Json
    stdout: str
    seconds: float
    peak_bytes: int
    tier: str
    result_bytes: int = 0


@dataclass(frozen=True, slots=True)
class SnippetFailed:
    """The snippet raised an exception, was stopped, or left no well-formed result.

    Attributes:
        exception: name of the exception's type; None if the snippet was stopped.
        line: line of the snippet, from 1, if known.
    """

    error_class: ErrorClass
    message: str
    stdout: str
    seconds: float
    tier: str
    exception: str | None = None
    line: int | None = None


Outcome = SnippetRan | SnippetFailed


@dataclass(frozen=True, slots=True)
class Measurement:
    """The cost of a snippet minus that of an idle process, measured from outside.

    Attributes:
        seconds: least CPU time of its runs, including the conversion of the result to plain data.
        peak_bytes: least peak memory of its runs, likewise.
        runs: how often it ran.
        result_bytes: size of its result as JSON.
    """

    seconds: float
    peak_bytes: int
    runs: int
    result_bytes: int = 0

    @classmethod
    def least(cls, measured: Sequence[Self]) -> Self:
        """Combines the measurements of all runs of a snippet."""
        seconds, peak_bytes = min(one.seconds for one in measured), min(one.peak_bytes for one in measured)
        return cls(seconds, peak_bytes, sum(one.runs for one in measured), measured[0].result_bytes)
