"""What became of a snippet."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from eval_pipeline.core.model import ErrorClass, Json


@dataclass(frozen=True, slots=True)
class SnippetRan:
    """The snippet ran to its end and left a result.

    Attributes:
        result: tagged plain data as `inside/encode.py` writes it, checked; `results.as_pandas` makes the value of it.
        stdout: what it printed.
        seconds: CPU time of the snippet's process above that of one that does nothing, measured from outside.
        peak_bytes: its peak memory above that of a process that does nothing, measured from outside.
        tier: what held it, e.g. `bwrap`.
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
    """The snippet raised, was stopped, or left no well-formed result.

    Attributes:
        exception: name of the exception's type; None where the snippet was stopped.
        line: of the snippet, from 1, where it is known.
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
    """What a snippet costs, measured from outside its process, above what a process costs that does nothing.

    Attributes:
        seconds: least CPU time of its runs, with that of making plain data of the result.
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
        """One of all runs of the same snippet."""
        seconds, peak_bytes = min(one.seconds for one in measured), min(one.peak_bytes for one in measured)
        return cls(seconds, peak_bytes, sum(one.runs for one in measured), measured[0].result_bytes)
