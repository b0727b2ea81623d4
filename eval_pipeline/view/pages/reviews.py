"""The pages for reviews of a suite: adding reviews, queues, disputed answers, and proposals for the gold."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import RedirectResponse, Response

from eval_pipeline.analysis.reviews.corrected import corrected_figure, headline_rater
from eval_pipeline.analysis.reviews.drawing import WAYS
from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.core.system.memory import give_back_memory
from eval_pipeline.operations.reviews.reviewing import (
    Said,
    correction_from,
    disputed,
    draw_queue,
    keep_reviews,
    progress_of,
    review_answer,
)
from eval_pipeline.suites.reviews.queues import QueueItem
from eval_pipeline.view.addresses import address
from eval_pipeline.view.evaluation import model_versions_of
from eval_pipeline.view.page import NotFoundError, Page, Visit, whole_number
from eval_pipeline.view.reviewing import COOKIE, Desk, cookie_of, desk_of, item_address, open_item

_A_YEAR_S = 31_536_000
_ANSWER = ("turn_id", "model_version", "eval_date", "sample", "response_hash")


def _reviews(visit: Visit) -> Response:
    """Shows queues and figures."""
    desk = desk_of(visit)
    suite, current = desk.inputs.suite, desk.reviewed.current
    figures = visit.look.rows(
        """SELECT queue, model_version, figure, label, n, value, low, high, reason FROM review_statistics
        WHERE suite = ? ORDER BY queue NULLS LAST, model_version NULLS FIRST, figure, label""",
        [suite],
    )
    queues = [
        {
            "queue": one.queue,
            "reviewed": len(one.reviewed),
            "mine": sum(desk.who in people for people in one.reviewed.values()),
            "people": sorted({who for people in one.reviewed.values() for who in people}),
            "corrected": [
                row
                for row in figures
                if row["queue"] == one.queue.id and row["figure"] == corrected_figure(headline_rater(one.queue))
            ],
        }
        for one in progress_of(desk.reviewed)
    ]
    return visit.page(
        "reviews.html.j2",
        f"Reviews of {suite}",
        suite=suite,
        desk=desk,
        queues=list(reversed(queues)),
        reviews=len(current),
        people=sorted({review.who for review in current}),
        answers=len({review.answer for review in current}),
        disputed=len(disputed(desk.reviewed)),
        figures=figures,
        ways=WAYS,
        model_versions=list(model_versions_of(visit.look, suite)),
    )


def _disputes(visit: Visit) -> Response:
    """Shows the answers on which reviewers disagree."""
    desk = desk_of(visit)
    suite = desk.inputs.suite
    found = [
        {
            "reviews": reviews,
            "address": f"{item_address(suite, _item_of(reviews[0].model_dump()))}&back=disputes#review",
        }
        for reviews in disputed(desk.reviewed)
    ]
    return visit.page("disputes.html.j2", f"What reviewers of {suite} are at odds about", suite=suite, found=found)


def _next(visit: Visit) -> Response:
    """Redirects to the next answer of a queue that the reviewer has not reviewed yet."""
    desk = desk_of(visit)
    return RedirectResponse(_address_of_next(visit, desk, visit.argument("queue"), None), 303)


def _draw(visit: Visit) -> Response:
    """Draws a queue and redirects to its first answer."""
    desk = desk_of(visit)
    by = _field(visit, "by")
    if by not in WAYS:
        raise UsageError(f"unknown way to draw '{by}'; one of: {', '.join(WAYS)}")
    versions = [name for name in visit.form.get("model_version", []) if name]
    size, seed = (whole_number(_field(visit, name)) for name in ("size", "seed"))
    if not 1 <= size <= 100_000:
        raise UsageError("the size of a queue is a number from 1 to 100,000")
    visit.bench.published.make_room(visit.look)  # drawing reads whole columns of the record, and nothing of the store
    try:
        draw_queue(desk.inputs, versions or None, by, size, seed)
    except StoreError as error:
        raise UsageError(str(error)) from error
    finally:
        give_back_memory()
    return RedirectResponse(f"/suites/{desk.inputs.suite}/reviews", 303)


def _update(visit: Visit) -> Response:
    """Updates the tables of reviews in the store."""
    desk = desk_of(visit)
    keep_reviews(desk.inputs.anew())
    return RedirectResponse(f"/suites/{desk.inputs.suite}/reviews#figures", 303)


def _say(visit: Visit) -> Response:
    """Adds a review and redirects: to the next answer of the queue, or back to where the reviewer came from."""
    desk = desk_of(visit)
    item, queue, suite = _item_of(_values(visit)), _field(visit, "queue"), desk.inputs.suite
    key = (suite, item.model_version, item.eval_date, item.turn_id, item.sample)
    if visit.look.row(_KNOWN, key) is None:
        raise NotFoundError(f"the store has no such answer to '{item.turn_id}'")
    said = Said(
        _field(visit, "who"),
        _field(visit, "verdict"),
        bool(_field(visit, "gold_wrong")),
        correction_from(_field(visit, "correction").strip() or None, "the correction"),
        _field(visit, "tag").strip() or None,
        _field(visit, "note"),
        queue or None,
        _field(visit, "gold_hash") or None,
    )
    try:
        review_answer(desk.inputs, item, said, desk.reviewed)
    except StoreError as error:
        raise UsageError(str(error)) from error
    fresh = desk_of(visit)
    if queue:
        goal = _address_of_next(visit, Desk(fresh.inputs, fresh.reviewed, said.who.strip()), queue, item)
    elif _field(visit, "back") == "disputes":
        goal = f"/suites/{suite}/disputes"
    else:
        goal = f"{item_address(suite, item)}#review"
    answer = RedirectResponse(goal, 303)
    answer.set_cookie(COOKIE, cookie_of(said.who.strip()), max_age=_A_YEAR_S, httponly=True, samesite="strict")
    return answer


_KNOWN = """SELECT 1 AS known FROM turn_results
WHERE suite = ? AND model_version = ? AND eval_date = ? AND turn_id = ? AND sample = ?"""


def _address_of_next(visit: Visit, desk: Desk, queue: str, after: QueueItem | None) -> str:
    progress = desk.progress(queue)
    here = next((item for item in progress.queue.items if after and item.answer == after.answer), None)
    found = open_item(visit.look, desk.inputs.suite, progress, desk.who, here)
    suite = desk.inputs.suite
    return item_address(suite, found, queue) if found else address(f"/suites/{suite}/reviews", {"done": queue})


def _values(visit: Visit) -> Mapping[str, Any]:
    return {name: _field(visit, name) for name in _ANSWER}


def _item_of(values: Mapping[str, Any]) -> QueueItem:
    """Returns the answer that a form or a review names. Raises a UsageError if it names none."""
    try:
        return QueueItem.model_validate({name: values[name] for name in _ANSWER} | {"stratum": ""})
    except ValueError as error:
        raise UsageError("the form does not say which answer it is about; load the page again") from error


def _field(visit: Visit, name: str) -> str:
    return visit.form.get(name, [""])[-1]


PAGES = (
    Page("/suites/{suite}/reviews", _reviews),
    Page("/suites/{suite}/disputes", _disputes),
    Page("/suites/{suite}/queue", _next),
    Page("/suites/{suite}/queues", _draw, ("POST",)),
    Page("/suites/{suite}/review", _say, ("POST",)),
    Page("/suites/{suite}/figures", _update, ("POST",)),
)
