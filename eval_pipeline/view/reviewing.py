"""Reviews as pages see them: from the files beside the suite, so that what somebody just said is there."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from eval_pipeline.analysis.reviews.making import Reviewed, reviewed_of
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.reviewing import Progress, own_name, progress_of
from eval_pipeline.suites.reviews.files import reviews_folder
from eval_pipeline.suites.reviews.queues import QueueItem
from eval_pipeline.suites.reviews.review import response_hash
from eval_pipeline.view.addresses import turn_address
from eval_pipeline.view.page import NotFoundError, Visit
from eval_pipeline.view.published import Look
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.workspace import Workspace

COOKIE = "reviewer"
_RESPONSE = """SELECT a.response FROM attempts AS a
SEMI JOIN turn_results AS r USING (suite, model_version, eval_date, turn_id, sample)
WHERE a.suite = ? AND a.model_version = ? AND a.eval_date = ? AND a.turn_id = ? AND a.sample = ?
ORDER BY a.number DESC LIMIT 1"""


@dataclass(frozen=True, slots=True)
class Desk:
    """A suite as reviewers see it.

    Attributes:
        inputs: of the suite.
        reviewed: what is kept beside it.
        who: the reviewer, as the browser remembers.
    """

    inputs: Inputs
    reviewed: Reviewed
    who: str

    def progress(self, queue: str) -> Progress:
        """How far people are with a queue. Raises NotFoundError where there is none of that id."""
        found = next((one for one in progress_of(self.reviewed) if one.queue.id == queue), None)
        if found is None:
            raise NotFoundError(f"'{self.inputs.suite}' has no queue '{queue}'")
        return found


def desk_of(visit: Visit) -> Desk:
    """The suite that the address names. Raises UsageError where there is none of that name."""

    def make() -> Inputs:
        workspace = Workspace(visit.bench.home)
        return Inputs(workspace, workspace.suite(visit.suite).name)

    inputs = visit.look.remembered(("reviews of", visit.suite), make)
    folder = reviews_folder(inputs.workspace.suite(inputs.suite).folder)
    state = tuple(_files(folder))
    reviewed = visit.look.remembered(("reviewed", visit.suite, state), lambda: reviewed_of(inputs))
    return Desk(inputs, reviewed, unquote(visit.request.cookies.get(COOKIE, "")) or own_name())


def cookie_of(who: str) -> str:
    """A reviewer's name as a cookie can hold it."""
    return quote(who)[:1000]


def item_address(suite: str, item: QueueItem, queue: str = "") -> str:
    """Where an answer is shown, as one of a queue if that is named."""
    partition = Partition(suite, item.model_version, item.eval_date)
    return turn_address(partition, item.turn_id, item.sample, {"queue": queue} if queue else None)


def open_item(look: Look, suite: str, progress: Progress, who: str, after: QueueItem | None) -> QueueItem | None:
    """The next answer of a queue for somebody that the store still has; None where nothing is left."""
    items = list(progress.queue.items)
    start = items.index(after) + 1 if after in items else 0
    left = [one for one in (*items[start:], *items[:start]) if who not in progress.reviewed.get(one.answer, ())]
    return next((one for one in left if one != after and is_shown(look, suite, one)), None)


def is_shown(look: Look, suite: str, item: QueueItem) -> bool:
    """Whether the store has the answer, and the very response."""
    row = look.row(_RESPONSE, [suite, item.model_version, item.eval_date, item.turn_id, item.sample])
    return row is not None and response_hash(row["response"]) == item.response_hash


def _files(folder: Path) -> Iterator[tuple[str, int, int]]:
    """What changes whenever a file of reviews does."""
    for place in (folder, folder / "queues"):
        if place.is_dir():
            for entry in sorted(os.scandir(place), key=lambda entry: entry.name):
                status = entry.stat()
                yield entry.name, status.st_mtime_ns, status.st_size
