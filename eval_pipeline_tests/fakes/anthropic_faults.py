"""What can go wrong between a client and the Anthropic API, as values for the fake server to play.

A script of them is a list (one a request to /v1/messages, in order of arrival, None where all goes well), `OnOperation`
for a list elsewhere, `RandomFaults`, or any function of what was asked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

MESSAGES = "messages"
COUNT_TOKENS = "count_tokens"
BATCH_CREATE = "batch.create"
BATCH_LIST = "batch.list"
BATCH_GET = "batch.get"
BATCH_RESULTS = "batch.results"


@dataclass(frozen=True, slots=True)
class Status:
    """An answer with an error status, or one that redirects to `location`.

    `echo_key` repeats the client's key in the message, as a bad gateway might.
    """

    status: int
    type: str = "api_error"
    message: str = "made to fail"
    retry_after: str | None = None
    error_code: str | None = None
    echo_key: bool = False
    location: str | None = None


@dataclass(frozen=True, slots=True)
class BrokenStream:
    """The connection closes after that many events, or half way through a reply that is not a stream.

    `in_order`: the stream is brought to its end as HTTP wants it, only too early.
    """

    after: int = 3
    in_order: bool = False


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """Status 200, then an `error` event after that many events; as the body where the reply is not a stream."""

    type: str = "overloaded_error"
    message: str = "Overloaded"
    after: int = 2


@dataclass(frozen=True, slots=True)
class Malformed:
    """Status 200 and something that is not JSON; as the last event where the reply is a stream."""


@dataclass(frozen=True, slots=True)
class Reset:
    """The connection is reset before anything was done."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Nothing is sent for so long, then the connection closes."""

    seconds: float = 3600.0


@dataclass(frozen=True, slots=True)
class Slow:
    """All goes well, but the reply comes late: a batch is accepted at once."""

    seconds: float


@dataclass(frozen=True, slots=True)
class LostReply:
    """The work is done (and charged for; a batch is accepted), then the connection is reset instead of a reply."""

    seconds: float = 0.0


Fault = Status | BrokenStream | ErrorEvent | Malformed | Reset | Hang | Slow | LostReply

OVERLOADED = Status(529, "overloaded_error", "Overloaded")
RATE_LIMITED = Status(429, "rate_limit_error", "This request would exceed your rate limit")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a script may look at: number and requests in flight are those of the operation."""

    operation: str
    number: int
    in_flight: int
    question: str


Faults = Callable[[Asked], Fault | None] | Sequence[Fault | None] | None


class RandomFaults:
    """Each request for an operation fails with the given rates, drawn from a seed in order of arrival."""

    def __init__(self, rates: Mapping[Fault, float], seed: int = 0, operation: str = MESSAGES) -> None:
        self._rates = dict(rates)
        self._rng = Random(seed)
        self._operation = operation

    def __call__(self, asked: Asked) -> Fault | None:
        if asked.operation != self._operation:
            return None
        drawn = self._rng.random()
        for fault, rate in self._rates.items():
            if drawn < rate:
                return fault
            drawn -= rate
        return None


class OnOperation:
    """A list of faults for one operation, in order of arrival."""

    def __init__(self, operation: str, faults: Sequence[Fault | None]) -> None:
        self._operation = operation
        self._left = list(faults)

    def __call__(self, asked: Asked) -> Fault | None:
        return self._left.pop(0) if self._left and asked.operation == self._operation else None


def as_function(faults: Faults) -> Callable[[Asked], Fault | None]:
    if faults is None:
        return lambda asked: None
    return faults if callable(faults) else OnOperation(MESSAGES, faults)
