"""What a query may take."""

from dataclasses import asdict, dataclass
from typing import Any, Self

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SqlLimits:
    """Limits of one query.

    Attributes:
        seconds: wall-clock time; past it the query is interrupted, and killed where that does not stop it.
        memory_bytes: address space of the process above what it takes when idle; the engine gets half of it.
        rows: of a result; a larger one is an error, never a part of itself.
        result_bytes: of a result's values.
        threads: of the engine.
    """

    seconds: float = 10.0
    memory_bytes: int = 1024 * MIB
    rows: int = 100_000
    result_bytes: int = 64 * MIB
    threads: int = 1

    def as_json(self) -> dict[str, Any]:
        """As the child process takes them."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Self:
        """The reverse of `as_json`."""
        return cls(**told)
