"""The pages for the reviews of a suite: queues, figures, and disputed answers."""

from starlette.responses import RedirectResponse, Response

from eval_pipeline.analysis.reviews.corrected import corrected_figure, headline_rater
from eval_pipeline.analysis.reviews.drawing import WAYS
from eval_pipeline.analysis.reviews.figures import unborne
from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.core.system.memory import give_back_memory
from eval_pipeline.operations.reviews.reviewing import (
    disputed,
    draw_queue,
    keep_reviews,
    progress_of,
)
from eval_pipeline.view.evaluation import model_versions_of
from eval_pipeline.view.page import Page, Visit, whole_number
from eval_pipeline.view.reviewing import address_of_next, desk_of, item_address, item_of


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
        figures=[row for row in figures if row["value"] is not None],
        unborne=list(unborne(figures)),
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
            "address": f"{item_address(suite, item_of(reviews[0].model_dump()))}&back=disputes",
        }
        for reviews in disputed(desk.reviewed)
    ]
    return visit.page("disputes.html.j2", f"What reviewers of {suite} are at odds about", suite=suite, found=found)


def _next(visit: Visit) -> Response:
    """Redirects to the next answer of a queue that the reviewer has not reviewed yet."""
    desk = desk_of(visit)
    return RedirectResponse(address_of_next(visit, desk, visit.argument("queue"), None), 303)


def _draw(visit: Visit) -> Response:
    """Draws a queue and redirects to its first answer."""
    desk = desk_of(visit)
    by = visit.field("by")
    if by not in WAYS:
        raise UsageError(f"unknown way to draw '{by}'; one of: {', '.join(WAYS)}")
    versions = [name for name in visit.form.get("model_version", []) if name]
    size, seed = (whole_number(visit.field(name)) for name in ("size", "seed"))
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


PAGES = (
    Page("/suites/{suite}/reviews", _reviews),
    Page("/suites/{suite}/disputes", _disputes),
    Page("/suites/{suite}/queue", _next),
    Page("/suites/{suite}/queues", _draw, ("POST",)),
    Page("/suites/{suite}/figures", _update, ("POST",)),
)
