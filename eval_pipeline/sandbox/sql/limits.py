"""Limits on what a query may use."""

from dataclasses import asdict, dataclass
from typing import Any, Self

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SqlLimits:
    """Limits of one query.

    Attributes:
        seconds: processor time of the engine (on a server: time by the clock); then the query is interrupted, or its
            process killed if that does not stop it. See `Deadline`.
        memory_bytes: address space in addition to that of the idle process; the engine gets half of it.
        rows: maximum number of rows in a result; a larger result is an error and is never cut.
        result_bytes: size of a result's values.
        threads: number of the engine's threads.
    """

    seconds: float = 10.0
    memory_bytes: int = 1024 * MIB
    rows: int = 100_000
    result_bytes: int = 64 * MIB
    threads: int = 1

    def as_json(self) -> dict[str, Any]:
        """Returns the limits in the form that the child process reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Self:
        """Reads limits that `as_json` wrote."""
        return cls(**told)
