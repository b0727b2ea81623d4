"""What a call to a model comes to, and what calls have come to so far."""

from dataclasses import dataclass
from datetime import UTC, date, datetime

from eval_pipeline.core.model import CallFailure, Response


@dataclass(frozen=True, slots=True)
class Answered:
    """A response; `from_journal` where it cost nothing now."""

    response: Response
    from_journal: bool


Answer = Answered | CallFailure


@dataclass(slots=True)
class Counters:
    """What a caller did so far.

    Attributes:
        calls: tries sent to the provider, retries among them.
        retries: tries after the first one of a question.
        answered: questions answered by a call.
        journal_hits: questions answered without a call.
        failures: questions without an answer, but for those refused.
        refused: questions that the budget did not allow.
        responses: what calls gave, counted when it came: an exception may keep it from becoming an answer.
        tokens, usd: what the answers took; no dollars (None) where no call had a price.
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

    @property
    def done(self) -> int:
        """Questions that are over."""
        return self.answered + self.journal_hits + self.failures + self.refused


def utc_today() -> date:
    """The day by which prices are looked up."""
    return datetime.now(UTC).date()
