"""What stands behind the fake Anthropic server: the model that answers, its cache, its bill, its batches."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from eval_pipeline_tests.fakes.anthropic_batches import CANCELED, EXPIRED, Entry, FakeBatch, errored
from eval_pipeline_tests.fakes.anthropic_messages import (
    Answers,
    Body,
    PrefixCache,
    body_hash,
    find_answer,
    message_json,
)


@dataclass(slots=True)
class FakeModel:
    """Answers and keeps count.

    Attributes:
        charged: body hash → answers that were paid for, whether or not the reply arrived.
        answered: body hash → answers that were sent whole, those of batches that ended among them.
        batches: every batch that was taken, in order.
    """

    answers: Answers
    cache: PrefixCache
    batch_polls: int
    batch_entry: Entry
    charged: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    batches: list[FakeBatch] = field(default_factory=list)

    def answer(self, body: Body, tier: str = "standard") -> dict[str, Any]:
        """The message for a request; it is charged for. Raises LookupError where there is none."""
        answer = find_answer(self.answers, body)
        usage = self.cache.usage(body)
        self.cache.begun(body)
        self.charged[body_hash(body)] += 1
        return message_json(f"msg_{self.charged.total():06}", body, answer, usage, tier)

    def take_batch(self, body: Body) -> FakeBatch:
        """Accepts a batch."""
        requests = {entry["custom_id"]: entry["params"] for entry in body["requests"]}
        batch = FakeBatch(f"msgbatch_{len(self.batches) + 1:06}", requests, self.batch_polls)
        self.batches.append(batch)
        if batch.polls_left <= 0:
            self._end(batch)
        return batch

    def find_batch(self, batch_id: str) -> FakeBatch | None:
        """The batch of that id."""
        return next((batch for batch in self.batches if batch.id == batch_id), None)

    def look_at(self, batch: FakeBatch) -> None:
        """A poll: brings the batch nearer to its end."""
        batch.polls_left -= 1
        if not batch.ended and (batch.polls_left <= 0 or batch.canceled):
            self._end(batch)

    def _end(self, batch: FakeBatch) -> None:
        batch.results = {custom_id: self._result(batch, custom_id) for custom_id in batch.requests}

    def _result(self, batch: FakeBatch, custom_id: str) -> dict[str, Any]:
        body = batch.requests[custom_id]
        what = CANCELED if batch.canceled else self.batch_entry(custom_id, body)
        if what in {EXPIRED, CANCELED}:
            return {"type": what}
        if what is not None:
            return errored(what)
        message = self.answer(body, "batch")
        self.answered[body_hash(body)] += 1
        return {"type": "succeeded", "message": message}
