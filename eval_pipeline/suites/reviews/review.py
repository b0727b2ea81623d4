"""A review: one person's judgement of one answer."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Annotated, Literal, NamedTuple, Self
from uuid import uuid4

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from eval_pipeline.core.ids import text_hash, without_surrogates
from eval_pipeline.core.model import Json

Verdict = Literal["right", "wrong", "cannot_tell"]
RIGHT, WRONG, CANNOT_TELL = VERDICTS = ("right", "wrong", "cannot_tell")
_Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


def _said(text: str) -> str:
    text = text.strip()
    if not text:
        raise ValueError("expected a text that says it, found none")
    return text


# Applied first, because pydantic cannot measure a text with a lone surrogate.
_WHOLE = BeforeValidator(without_surrogates)
_Name = Annotated[str, Field(max_length=100), _WHOLE, AfterValidator(_said)]
_Id = Annotated[str, Field(max_length=1000), _WHOLE, AfterValidator(_said)]


class AnswerKey(NamedTuple):
    """Identifies the answer that a person has seen; evaluations of two dates with equal responses share it."""

    turn_id: str
    model_version: str
    response_hash: str


class Review(BaseModel):
    """A person's judgement of one answer of one model version; never changed, only superseded by another.

    Attributes:
        id: random, so that a duplicated line counts as one review.
        at: time, UTC.
        who: the reviewer.
        turn_id, model_version, eval_date, sample: identify the answer.
        response_hash: hash of the response that was seen; the review applies to no other response.
        gold_hash: hash of the gold that was seen; None if none was.
        verdict: on the answer, whatever the gold says.
        gold_wrong: whether the gold is wrong.
        correction: the right fields of the turn in the case file.
        tag: how the answer fails, as a word from a growing list.
        note: anything else.
        queue: id of the queue that asked for it; None if no queue did.
        probability: probability, above 0, with which the queue drew this answer.
        supersedes: id of a review by the same person that this one replaces.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: _Hash
    at: AwareDatetime
    who: _Name
    turn_id: Annotated[str, Field(pattern=r"^[^/]+/.+#\d{1,9}$", max_length=1000), _WHOLE]
    model_version: _Id
    eval_date: date
    sample: int = Field(ge=0)
    response_hash: _Hash
    gold_hash: _Hash | None = None
    verdict: Verdict
    gold_wrong: bool = False
    correction: dict[str, Json] | None = None
    tag: Annotated[str, Field(max_length=60), _WHOLE, AfterValidator(_said)] | None = None
    note: Annotated[str, Field(max_length=10_000), _WHOLE] = ""
    queue: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")] | None = None
    probability: float | None = Field(default=None, gt=0, le=1)
    supersedes: _Hash | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.correction is not None and not self.gold_wrong:
            raise ValueError("a 'correction' needs 'gold_wrong: true'")
        if (self.queue is None) != (self.probability is None):
            raise ValueError("'queue' and 'probability' come together")
        return self

    @classmethod
    def new(cls, **said: object) -> Self:
        """Creates a review dated now, with a new id.

        Raises:
            ValidationError: a field is wrong.
        """
        return cls.model_validate({"id": uuid4().hex, "at": datetime.now(UTC)} | said)

    @property
    def answer(self) -> AnswerKey:
        """The key of the answer that was seen."""
        return AnswerKey(self.turn_id, self.model_version, self.response_hash)

    def line(self) -> str:
        """Returns the review as a line of a file."""
        return self.model_dump_json(exclude_defaults=True) + "\n"


def response_hash(response: str | None) -> str:
    """Returns the hash of a response (`left(sha256(response), 32)` in SQL).

    A missing response counts as an empty one.
    """
    return text_hash(response or "")


def current(reviews: Sequence[Review]) -> list[Review]:
    """Returns the reviews that count: those not superseded, and only the newest of each person on an answer."""
    by_id = {review.id: review for review in reviews}
    replaced = {
        review.supersedes
        for review in reviews
        # Only the author can replace a review, and only by a later one, so that no two replace each other.
        if review.supersedes in by_id
        and by_id[review.supersedes].who == review.who
        and _order(by_id[review.supersedes]) < _order(review)
    }
    newest: dict[tuple[str, AnswerKey], Review] = {}
    for review in sorted((review for review in reviews if review.id not in replaced), key=_order):
        newest[review.who, review.answer] = review
    return sorted(newest.values(), key=_order)


def by_answer(reviews: Sequence[Review]) -> Mapping[AnswerKey, list[Review]]:
    """Groups reviews by answer."""
    found: dict[AnswerKey, list[Review]] = {}
    for review in reviews:
        found.setdefault(review.answer, []).append(review)
    return found


def asked_by_queues(reviews: Iterable[Review]) -> Mapping[str, Mapping[AnswerKey, frozenset[str]]]:
    """Returns queue → answer → people who reviewed it for that queue; superseded reviews count too."""
    found: dict[str, dict[AnswerKey, frozenset[str]]] = {}
    for review in reviews:
        if review.queue is not None:
            people = found.setdefault(review.queue, {})
            people[review.answer] = people.get(review.answer, frozenset()) | {review.who}
    return found


def verdict_of(reviews: Sequence[Review]) -> str | None:
    """Returns the majority verdict on one answer among those who can tell; None if it is a tie.

    Returns `cannot_tell` if nobody can tell.
    """
    right = sum(review.verdict == RIGHT for review in reviews)
    wrong = sum(review.verdict == WRONG for review in reviews)
    if not right and not wrong:
        return CANNOT_TELL
    return None if right == wrong else RIGHT if right > wrong else WRONG


def is_disputed(reviews: Sequence[Review]) -> bool:
    """Whether people disagree: on right or wrong, or on whether the gold is wrong."""
    verdicts = {review.verdict for review in reviews} - {CANNOT_TELL}
    return len(verdicts) > 1 or len({review.gold_wrong for review in reviews}) > 1


def _order(review: Review) -> tuple[datetime, str]:
    return review.at, review.id
