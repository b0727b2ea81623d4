"""The journal's table of batches.

Every batch is written down before it is submitted, so that none is paid for twice.
"""

import socket
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from eval_pipeline.asking.batches.table import COLUMNS, BatchRows, BatchTable, is_whole_batch
from eval_pipeline.core.errors import DamagedFileError, StoreError
from eval_pipeline.core.ids import json_text, parse_json
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.system.processes import is_alive, worldwide_mark

_ELSEWHERE = timedelta(hours=1)
"""After this time, a process on another machine, of which nothing is known, is taken for one that submits no more."""


class State(StrEnum):
    """State of a batch: `open` until its results are in the journal or it is certain that there will be none."""

    OPEN = "open"
    COLLECTED = "collected"
    REFUSED = "refused"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Intent:
    """A batch that was recorded in the journal before being submitted.

    Attributes:
        keys: journal keys of its requests, which are also their custom ids.
        batch_id: the provider's id; None if the batch was not submitted, or the process ended before it knew.
        owner: the process that submits it.
    """

    id: str
    created_at: datetime
    keys: frozenset[str]
    batch_id: str | None
    owner: str

    def __str__(self) -> str:
        """Returns the text shown to users who wait for the batch."""
        return f"{self.id[:8]} ({len(self.keys):,} requests)"


class BatchIntents:
    """The batches of one model version in a journal's table of batches.

    Several processes may use it at once; a request is never claimed by two of them.
    """

    def __init__(self, table: BatchTable, version: ModelVersion) -> None:
        self._table = table
        self._account = (version.provider, str(version.options.get("base_url", "")), version.model)
        self._version = version.name

    @property
    def model_version(self) -> str:
        """Name of the model version that asks."""
        return self._version

    def open(self) -> list[Intent]:
        """Returns the batches whose results are not all in the journal yet, oldest first. Raises StoreError."""
        return self._table.read(self._open)

    def claim(self, keys: Iterable[str]) -> Intent | None:
        """Writes down a batch of those keys that are in no open batch; returns None if there are none.

        Raises:
            StoreError: the batch could not be written, or another run has the lease of this one.
        """
        wanted, intent_id, now = list(keys), uuid.uuid4().hex, datetime.now(UTC)

        def work(rows: BatchRows) -> Intent | None:
            held = self._open(rows)
            if mine := next((intent for intent in held if intent.id == intent_id), None):
                return mine  # the work is repeated, and was done before
            taken = frozenset[str]().union(*(intent.keys for intent in held))
            left = [key for key in wanted if key not in taken]
            if not left:
                return None
            intent = Intent(intent_id, now, frozenset(left), None, worldwide_mark())
            row = (intent.id, *self._account, self._version, now.isoformat(), json_text(left))
            rows.put((*row, None, intent.owner, State.OPEN.value))
            return intent

        return self._table.write(work, paying=True)

    def take_over(self, intent: Intent) -> bool:
        """Makes this process the owner of a batch if its previous owner is gone; returns whether it is.

        Raises StoreError.
        """
        if intent.owner == worldwide_mark():
            return True
        if self._lives(intent.owner, intent.created_at):
            return False

        def work(rows: BatchRows) -> bool:
            # If several processes find the batch orphaned at the same moment, only one of them gets it.
            row = self._row(rows, intent.id)
            if row["owner"] != intent.owner or row["batch_id"] is not None:
                return False
            rows.put(tuple((row | {"owner": worldwide_mark()}).values()))
            return True

        return self._table.write(work, paying=True)

    def require_mine(self, intent: Intent) -> None:
        """Checks that this process may still submit a batch.

        Raises:
            StoreError: another process has taken it over, since this one had stopped for a while.
        """

        def work(rows: BatchRows) -> str:
            return str(self._row(rows, intent.id)["owner"])

        if self._table.write(work, paying=True) != intent.owner:
            raise StoreError(
                f"another run has taken over the batch {intent}; start this run again, it goes on from there"
            )

    def handed_in(self, intent_id: str, batch_id: str) -> None:
        """Records the provider's id of a submitted batch. Raises StoreError."""
        self._change(intent_id, batch_id=batch_id)

    def close(self, intent_id: str, state: State) -> None:
        """Records that no more results will be read from the batch. Raises StoreError."""
        self._change(intent_id, state=state.value)

    def batch_ids(self) -> frozenset[str]:
        """Returns the provider's ids of all batches submitted with this journal, including closed ones.

        Raises StoreError.
        """
        found = self._table.read(self._rows)
        return frozenset(row["batch_id"] for row in found if row["batch_id"] is not None)

    def _change(self, intent_id: str, **changes: str) -> None:
        self._table.write(lambda rows: rows.put(tuple((self._row(rows, intent_id) | changes).values())))

    def _open(self, rows: BatchRows) -> list[Intent]:
        mine = [
            Intent(
                row["intent_id"],
                datetime.fromisoformat(row["created_at"]),
                frozenset(parse_json(row["custom_ids"])),
                row["batch_id"],
                row["owner"],
            )
            for row in self._rows(rows)
            if row["state"] == State.OPEN.value and (row["provider"], row["endpoint"], row["model"]) == self._account
        ]
        return sorted(mine, key=lambda intent: intent.created_at)

    def _rows(self, rows: BatchRows) -> list[dict[str, Any]]:
        """Returns all batches, including closed and foreign ones, since a damaged row could be any of them."""
        found = rows.all()
        if not all(map(is_whole_batch, found)):
            raise DamagedFileError(
                f"a batch in the journal {self._table.place} is not as it was written; end all runs, then "
                "`eval-pipeline doctor --repair`"
            )
        return [dict(zip(COLUMNS, row[:-1], strict=True)) for row in found]

    def _row(self, rows: BatchRows, intent_id: str) -> dict[str, Any]:
        return next(row for row in self._rows(rows) if row["intent_id"] == intent_id)

    def _lives(self, owner: str, since: datetime) -> bool:
        """Whether the owner may still submit its batch."""
        if (known := self._table.lives(owner)) is not None:
            return known
        host, pid, started = owner.rsplit(" ", 2)
        if host.split("@")[0] == socket.gethostname():
            return is_alive(int(pid), started)
        return datetime.now(UTC) - since < _ELSEWHERE
