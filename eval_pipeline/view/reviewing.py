"""Reviews as pages see them, read from the files next to the suite so that new reviews appear at once."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from eval_pipeline.analysis.reviews.making import Reviewed, reviewed_of
from eval_pipeline.core.errors import EvalError, UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.reviews.reviewing import QueueProgress, own_name, progress_of
from eval_pipeline.suites.reviews.files import reviews_folder
from eval_pipeline.suites.reviews.queues import QueueItem
from eval_pipeline.view.addresses import address, review_address
from eval_pipeline.view.page import NotFoundError, Visit
from eval_pipeline.view.published import StoreView
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.workspace import Workspace

COOKIE = "reviewer"
_ANSWER = ("turn_id", "model_version", "eval_date", "sample", "response_hash")
_LOOKED_AT = 200
"""How many answers of a queue are searched for in the store at once; usually the first is found."""
_RESPONSES = """SELECT a.turn_id, a.sample, left(sha256(coalesce(a.response, '')), 32) AS hash FROM attempts AS a
SEMI JOIN turn_results AS r USING (suite, model_version, eval_date, turn_id, sample)
WHERE a.suite = ? AND a.model_version = ? AND a.eval_date = ? AND a.turn_id IN (SELECT unnest(?::VARCHAR[]))
QUALIFY row_number() OVER (PARTITION BY a.turn_id, a.sample ORDER BY a.number DESC) = 1"""
"""The last responses to some turns, as hashes that match `response_hash`."""


@dataclass(frozen=True, slots=True)
class Desk:
    """A suite as reviewers see it.

    Attributes:
        inputs: inputs of the suite.
        reviewed: the reviews that are stored next to it.
        who: the reviewer, as remembered by the browser.
    """

    inputs: Inputs
    reviewed: Reviewed
    who: str

    def progress(self, queue: str) -> QueueProgress:
        """Returns the progress of a queue. Raises a NotFoundError if there is no queue with that id."""
        found = next((one for one in progress_of(self.reviewed) if one.queue.id == queue), None)
        if found is None:
            raise NotFoundError(f"'{self.inputs.suite}' has no queue '{queue}'")
        return found


def desk_of(visit: Visit) -> Desk:
    """Returns the desk of the suite that the address names. Raises a UsageError if there is no such suite."""

    def make() -> Inputs:
        workspace = Workspace(visit.bench.home)
        return Inputs(workspace, workspace.suite(visit.suite).name)

    inputs = visit.look.remembered(("reviews of", visit.suite), make)
    folder = reviews_folder(inputs.workspace.suite(inputs.suite).folder)
    state = tuple(_files(folder))
    kept: dict[tuple[object, ...], Reviewed] = visit.look.remembered(("reviewed", visit.suite), dict)
    reviewed = kept.get(state)
    if reviewed is None:
        reviewed = reviewed_of(inputs)
        kept.clear()  # each review makes a new state, of megabytes if queues are large; only the last is asked for
        kept[state] = reviewed
    return Desk(inputs, reviewed, unquote(visit.request.cookies.get(COOKIE, "")) or own_name())


def reviewed_since(visit: Visit, model_version: str) -> tuple[tuple[str, str], ...]:
    """Returns turn id and hash of the response of answers that were reviewed since the store was published."""
    try:
        said = desk_of(visit).reviewed.reviews
    except EvalError:  # the suite is gone, and its reviews with it
        return ()
    rows = visit.look.rows("SELECT review_id FROM reviews WHERE suite = ?", [visit.suite]) if said else []
    known = {row["review_id"] for row in rows}
    new = (one.answer for one in said if one.model_version == model_version and one.id not in known)
    return tuple(sorted({(answer.turn_id, answer.response_hash) for answer in new}))


def cookie_of(who: str) -> str:
    """Encodes a reviewer's name for a cookie."""
    return quote(who)[:1000]


def item_address(suite: str, item: QueueItem, queue: str = "") -> str:
    """Returns the address at which an answer is reviewed, as part of a queue if one is named."""
    partition = Partition(suite, item.model_version, item.eval_date)
    return review_address(partition, item.turn_id, item.sample, {"queue": queue})


def open_item(
    look: StoreView, suite: str, progress: QueueProgress, who: str, after: QueueItem | None
) -> QueueItem | None:
    """Returns the next unreviewed answer of a queue that is still in the store; None if there is none left."""
    items = list(progress.queue.items)
    start = items.index(after) + 1 if after in items else 0
    turned = (*items[start:], *items[:start])
    left = [one for one in turned if one != after and who not in progress.reviewed.get(one.answer, ())]
    for first in range(0, len(left), _LOOKED_AT):
        block = left[first : first + _LOOKED_AT]
        shown = _shown(look, suite, block)
        if found := next((one for one in block if one in shown), None):
            return found
    return None


def address_of_next(visit: Visit, desk: Desk, queue: str, after: QueueItem | None) -> str:
    """Returns the address of the next answer of a queue for the reviewer; that of all reviews if there is none left."""
    progress, suite = desk.progress(queue), desk.inputs.suite
    here = next((item for item in progress.queue.items if after and item.answer == after.answer), None)
    found = open_item(visit.look, suite, progress, desk.who, here)
    return item_address(suite, found, queue) if found else address(f"/suites/{suite}/reviews", {"done": queue})


def item_of(values: Mapping[str, Any]) -> QueueItem:
    """Returns the answer that a form or a review names. Raises a UsageError if it names none."""
    try:
        return QueueItem.model_validate({name: values.get(name, "") for name in _ANSWER} | {"stratum": ""})
    except ValueError as error:
        raise UsageError("the form does not say which answer it is about; load the page again") from error


def _shown(look: StoreView, suite: str, items: Sequence[QueueItem]) -> set[QueueItem]:
    """Returns those of some answers that the store has with exactly that response, with one query per evaluation."""
    evaluations: dict[tuple[str, date], list[QueueItem]] = {}
    for item in items:
        evaluations.setdefault((item.model_version, item.eval_date), []).append(item)
    found = set()
    for (version, day), asked in evaluations.items():
        rows = look.rows(_RESPONSES, [suite, version, day, [item.turn_id for item in asked]])
        there = {(row["turn_id"], row["sample"], row["hash"]) for row in rows}
        found |= {item for item in asked if (item.turn_id, item.sample, item.response_hash) in there}
    return found


def _files(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Yields values that change whenever a file of reviews changes."""
    for place in (folder, folder / "queues"):
        if place.is_dir():
            for entry in sorted(os.scandir(place), key=lambda entry: entry.name):
                status = entry.stat()
                yield entry.name, status.st_mtime_ns, status.st_size
