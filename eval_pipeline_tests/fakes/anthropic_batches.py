"""The message batches of the fake Anthropic server: taken, counted down by polls, ended, listed, read."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from eval_pipeline_tests.fakes.anthropic_messages import Body

EXPIRED = "expired"
CANCELED = "canceled"

Entry = Callable[[str, Body], str | None]
"""Custom id and body → None where the request succeeds, `EXPIRED`, `CANCELED`, or the type of its error."""


def errored(kind: str) -> dict[str, Any]:
    """The result of a request that failed, as the API gives it."""
    error = {"type": kind, "message": "made to fail"}
    return {"type": "errored", "error": {"type": "error", "error": error, "request_id": None}}


@dataclass(slots=True)
class FakeBatch:
    """One batch.

    Attributes:
        requests: bodies by custom id, in order.
        polls_left: looks at the batch until it ends.
        results: set when it has ended, by custom id.
        archived: the results are not to be had any more, as the API has it after some weeks.
    """

    id: str
    requests: Mapping[str, Body]
    polls_left: int
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    results: dict[str, dict[str, Any]] | None = None
    canceled: bool = False
    archived: bool = False

    @property
    def ended(self) -> bool:
        return self.results is not None

    def as_json(self, url: str) -> dict[str, Any]:
        """As the API tells it."""
        stamp = self.created_at.isoformat().replace("+00:00", "Z")
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": "ended" if self.ended else "canceling" if self.canceled else "in_progress",
            "request_counts": self._counts(),
            "created_at": stamp,
            "expires_at": (self.created_at + timedelta(hours=24)).isoformat().replace("+00:00", "Z"),
            "ended_at": stamp if self.ended else None,
            "cancel_initiated_at": stamp if self.canceled else None,
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
