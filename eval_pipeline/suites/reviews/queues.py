"""Queues of answers to review: the drawn answers with their sampling probabilities; one file each, never changed."""

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from eval_pipeline.core.errors import Problem
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.reading.complaints import complaints, dotted
from eval_pipeline.core.reading.foreign import MOST_DOCUMENT_BYTES, read_text
from eval_pipeline.store.durable import fsync_path, make_folders, replace_durably, temporary_path
from eval_pipeline.suites.headers import refuse_copy
from eval_pipeline.suites.reviews.files import cannot_write, reviews_folder
from eval_pipeline.suites.reviews.review import AnswerKey

By = Literal["uniform", "disagreement", "narrowest"]
_Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class QueueItem(_Frozen):
    """An answer that was drawn; its fields are as in a review.

    Attributes:
        metric, judge: what the primary metric and the LLM judge said of it when it was drawn; None if nothing.
    """

    turn_id: str
    model_version: str
    eval_date: date
    sample: int = Field(ge=0)
    response_hash: _Hash
    stratum: str
    metric: bool | None = None
    judge: bool | None = None

    @property
    def answer(self) -> AnswerKey:
        """The key of the answer."""
        return AnswerKey(self.turn_id, self.model_version, self.response_hash)


class StratumCell(_Frozen):
    """How many answers of a stratum have the same model version and the same verdicts of metric and judge."""

    model_version: str
    metric: bool | None
    judge: bool | None
    answers: int = Field(ge=1)


class Stratum(_Frozen):
    """A group of answers: its size, and how many were drawn from it with equal probability.

    Attributes:
        cells: the verdicts of metric and judge on all its answers; empty in files of versions that did not keep them.
    """

    population: int = Field(ge=1)
    drawn: int = Field(ge=1)
    cells: tuple[StratumCell, ...] = ()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.drawn > self.population:
            raise ValueError("more were drawn than there are")
        if self.cells and sum(one.answers for one in self.cells) != self.population:
            raise ValueError("the cells do not add up to the population")
        return self

    @property
    def probability(self) -> float:
        """The probability with which each of its answers was drawn."""
        return self.drawn / self.population


class Queue(_Frozen):
    """Answers to review, in the order in which they should be reviewed.

    Attributes:
        id: hash of everything but the time.
        at: time of the draw, UTC.
        by: method of the draw.
        seed: seed of the draw.
        strata: name → stratum.
        items: the drawn answers; every beginning of the list is a draw from all strata too.
    """

    id: str = Field(pattern=r"^[0-9a-f]{12}$")
    at: AwareDatetime
    by: By
    seed: int
    strata: Mapping[str, Stratum]
    items: tuple[QueueItem, ...]

    @model_validator(mode="after")
    def _whole(self) -> Self:
        counts = {name: sum(item.stratum == name for item in self.items) for name in self.strata}
        wrong = [name for name, stratum in self.strata.items() if counts[name] != stratum.drawn]
        if wrong or len(self.items) != sum(counts.values()):
            raise ValueError("its items are not those that its strata count")
        return self

    @classmethod
    def drawn(
        cls, at: object, by: str, seed: int, strata: Mapping[str, Stratum], items: tuple[QueueItem, ...]
    ) -> "Queue":
        """Creates a queue with its id."""
        told = [by, seed, *(item.model_dump(mode="json") for item in items)]
        made = {"id": json_hash(told)[:12], "at": at, "by": by, "seed": seed, "strata": strata, "items": items}
        return cls.model_validate(made)

    def probability(self, item: QueueItem) -> float:
        """Returns the probability with which an item was drawn."""
        return self.strata[item.stratum].probability


def write_queue(suite: Path, queue: Queue) -> Path:
    """Writes a queue beside the reviews of a suite's folder; an existing one is kept.

    Raises:
        StoreError: the folder cannot be written.
        UsageError: the folder is a copy of what is in a bucket.
    """
    refuse_copy(suite)
    path = reviews_folder(suite) / "queues" / f"{queue.id}.json"
    if path.exists():
        return path
    temporary = temporary_path(path)
    try:
        make_folders(path.parent)
        temporary.write_text(json.dumps(queue.model_dump(mode="json"), ensure_ascii=False, indent=1) + "\n", "utf-8")
        fsync_path(temporary)
        replace_durably(temporary, path)
    except OSError as error:
        raise cannot_write(suite, error) from error
    return path


def read_queues(suite: Path) -> tuple[dict[str, Queue], list[Problem]]:
    """Returns the queues of a suite's folder by id, oldest first, and the problems of invalid files."""
    found: list[Queue] = []
    problems: list[Problem] = []
    for path in sorted((reviews_folder(suite) / "queues").glob("*.json")):
        name = path.relative_to(suite.parent).as_posix()
        try:
            found.append(Queue.model_validate_json(read_text(path, most=MOST_DOCUMENT_BYTES)))
        except ValidationError as error:
            problems += [Problem(name, None, dotted(place), message) for place, message in complaints(error, Queue)]
        except (OSError, ValueError) as error:
            problems.append(Problem(name, None, "", f"cannot be read: {error}"))
    return {queue.id: queue for queue in sorted(found, key=lambda queue: (queue.at, queue.id))}, problems
