"""What stands behind the fake Anthropic server: the model that answers, its cache, its bill, its batches."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from eval_pipeline_tests.fakes.anthropic_messages import (
    Answers,
    Body,
    PrefixCache,
    body_hash,
    find_answer,
    message_json,
)

EXPIRED = "expired"
CANCELED = "canceled"

Entry = Callable[[str, Body], str | None]
"""Custom id and body → None where the request succeeds, `EXPIRED`, `CANCELED`, or the type of its error."""


@dataclass(slots=True)
class FakeBatch:
    """One batch; requests and, once it has ended, results are by custom id.

    `archived`: the results are not to be had any more, as the API has it after some weeks.
    """

    id: str
    requests: Mapping[str, Body]
    polls_left: int
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    results: dict[str, dict[str, Any]] | None = None
    archived: bool = False

    @property
    def ended(self) -> bool:
        return self.results is not None

    def as_json(self, url: str) -> dict[str, Any]:
        stamp = self.created_at.isoformat().replace("+00:00", "Z")
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": "ended" if self.ended else "in_progress",
            "request_counts": self._counts(),
            "created_at": stamp,
            "expires_at": (self.created_at + timedelta(hours=24)).isoformat().replace("+00:00", "Z"),
            "ended_at": stamp if self.ended else None,
            "cancel_initiated_at": None,
            "archived_at": stamp if self.archived else None,
            "results_url": f"{url}/v1/messages/batches/{self.id}/results" if self.ended and not self.archived else None,
        }

    def result_lines(self) -> Iterator[bytes]:
        """The results as JSON lines; the API promises no order, so the last comes first."""
        for custom_id, result in reversed((self.results or {}).items()):
            yield json.dumps({"custom_id": custom_id, "result": result}).encode() + b"\n"

    def _counts(self) -> dict[str, int]:
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        if self.results is None:
            counts["processing"] = len(self.requests)
        else:
            for result in self.results.values():
                counts[result["type"]] += 1
        return counts


@dataclass(slots=True)
class FakeModel:
    """Answers, and counts them by body hash: those paid for, whether or not the reply arrived, and those sent whole."""

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
        requests = {entry["custom_id"]: entry["params"] for entry in body["requests"]}
        batch = FakeBatch(f"msgbatch_{len(self.batches) + 1:06}", requests, self.batch_polls)
        self.batches.append(batch)
        if batch.polls_left <= 0:
            self._end(batch)
        return batch

    def find_batch(self, batch_id: str) -> FakeBatch | None:
        return next((batch for batch in self.batches if batch.id == batch_id), None)

    def look_at(self, batch: FakeBatch) -> None:
        """A poll: brings the batch nearer to its end."""
        batch.polls_left -= 1
        if not batch.ended and batch.polls_left <= 0:
            self._end(batch)

    def _end(self, batch: FakeBatch) -> None:
        batch.results = {custom_id: self._result(batch, custom_id) for custom_id in batch.requests}

    def _result(self, batch: FakeBatch, custom_id: str) -> dict[str, Any]:
        body = batch.requests[custom_id]
        what = self.batch_entry(custom_id, body)
        if what in {EXPIRED, CANCELED}:
            return {"type": what}
        if what is not None:
            error = {"type": what, "message": "made to fail"}
            return {"type": "errored", "error": {"type": "error", "error": error, "request_id": None}}
        message = self.answer(body, "batch")
        self.answered[body_hash(body)] += 1
        return {"type": "succeeded", "message": message}


def page_of(batches: list[FakeBatch], query: Mapping[str, str], url: str) -> dict[str, Any]:
    """A page of the list, the newest first."""
    newest_first = batches[::-1]
    if "after_id" in query:
        ids = [batch.id for batch in newest_first]
        newest_first = newest_first[ids.index(query["after_id"]) + 1 :]
    limit = int(query.get("limit", "20"))
    page = [batch.as_json(url) for batch in newest_first[:limit]]
    return {
        "data": page,
        "has_more": len(newest_first) > limit,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
    }
