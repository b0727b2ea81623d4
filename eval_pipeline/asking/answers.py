"""The outcome of a call to a model, and counters over all calls."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from eval_pipeline.core.model import CallFailure, Response
from eval_pipeline.core.provenance import PROVENANCE


@dataclass(frozen=True, slots=True)
class Answered:
    """A response; `from_journal` means that it was read from the journal and cost nothing now."""

    response: Response
    from_journal: bool


Answer = Answered | CallFailure


@dataclass(slots=True)
class Counters:
    """Totals over the calls made so far.

    Attributes:
        calls: requests sent to the provider, including retries.
        retries: requests after the first one for a question.
        answered: questions answered by a call.
        journal_hits: questions answered from the journal, without a call.
        failures: questions without an answer, except those refused by the budget.
        refused: questions that the budget did not allow.
        responses: responses received, counted on arrival; an exception may still prevent one from becoming an answer.
        tokens, usd: totals of the answers; `usd` is None if no call had a price.
        retried: kind of error after which a question is asked again → how often, and an example.
    """

    calls: int = 0
    retries: int = 0
    answered: int = 0
    journal_hits: int = 0
    failures: int = 0
    refused: int = 0
    responses: int = 0
    tokens: int = 0
    usd: float | None = None
    retried: dict[str, tuple[int, str]] = field(default_factory=dict)

    def note_retry(self, kind: str, example: str) -> None:
        """Counts an error after which a question is asked again."""
        times, first = self.retried.get(kind, (0, example))
        self.retried[kind] = (times + 1, first)

    @property
    def done(self) -> int:
        """Number of questions that are finished, with or without an answer."""
        return self.answered + self.journal_hits + self.failures + self.refused


def utc_today() -> date:
    """Returns the current day in UTC, for which prices are looked up."""
    return datetime.now(UTC).date()


def stamped(response: Response, retries: int, today: Callable[[], date]) -> Response:
    """Returns a response with its number of retries, and the day on which it was asked for."""
    # Written out, because dataclasses.replace takes four times as long, and this runs for every response.
    return Response(
        text=response.text,
        stop_reason=response.stop_reason,
        usage=response.usage,
        latency_ms=response.latency_ms,
        first_byte_ms=response.first_byte_ms,
        retries=retries,
        asked_on=response.asked_on or ("" if PROVENANCE in response.metadata else today().isoformat()),
        batch=response.batch,
        call_error=response.call_error,
        usd=response.usd,
        reasoning=response.reasoning,
        metadata=response.metadata,
        calls=response.calls,
        own=response.own,
    )
