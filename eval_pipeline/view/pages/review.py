"""The page where a person reviews an answer: what it says beside the gold, and no verdict before the person's own."""

from urllib.parse import parse_qs, urlencode

from starlette.responses import RedirectResponse, Response

from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.reviews.reviewing import ReviewStatement, correction_from, review_answer
from eval_pipeline.suites.reviews.queues import QueueItem
from eval_pipeline.tracks.abilities import results_of
from eval_pipeline.view.addresses import TOLD, review_address
from eval_pipeline.view.page import NotFoundError, Page, Visit
from eval_pipeline.view.pages.turn import seen_of
from eval_pipeline.view.reviewing import COOKIE, Desk, address_of_next, cookie_of, desk_of, item_of
from eval_pipeline.view.turn.around import around
from eval_pipeline.view.turn.prompts import asked_in
from eval_pipeline.view.turn.review import correction_text, form_of, said_of
from eval_pipeline.view.turn.seen import by_track

_A_YEAR_S = 31_536_000
_KNOWN = """SELECT 1 AS known FROM turn_results
WHERE suite = ? AND model_version = ? AND eval_date = ? AND turn_id = ? AND sample = ?"""


def _ask(visit: Visit) -> Response:
    """Shows question, gold and answer with a form; verdict, metrics and other people's reviews once one is said."""
    evaluation, seen = seen_of(visit)
    partition = evaluation.partition
    form, said = form_of(seen), said_of(seen)
    among = None if form["place"] else around(seen, review_address)
    named = {"evaluation": partition.evaluation, **(among.arguments if among else {})}
    return visit.page(
        "review.html.j2",
        f"Review of {seen.turn_id}",
        seen=seen,
        partition=partition,
        form=form,
        said=said,
        correction=correction_text(said),
        around=among,
        told=(among and among.tells) or ("a page that tells the verdict" if visit.argument(TOLD) else ""),
        among=urlencode({name: value for name, value in named.items() if value}, doseq=True),
        results=by_track(seen, results_of)[0],
        # Prompts of later attempts tell what was wrong before.
        asked=asked_in(next(iter(seen.attempts), None), seen.look),
        judged=[row["choice"] for row in seen.rows("judgements", "model") if row["asked"]] if said["mine"] else [],
    )


def _say(visit: Visit) -> Response:
    """Adds a review and redirects: to the next answer of the queue, or back to the answer, now with all verdicts."""
    desk = desk_of(visit)
    item, queue, suite = (
        item_of({name: values[-1] for name, values in visit.form.items()}),
        visit.field("queue"),
        desk.inputs.suite,
    )
    key = (suite, item.model_version, item.eval_date, item.turn_id, item.sample)
    if visit.look.row(_KNOWN, key) is None:
        raise NotFoundError(f"the store has no such answer to '{item.turn_id}'")
    said = ReviewStatement(
        visit.field("who"),
        visit.field("verdict"),
        bool(visit.field("gold_wrong")),
        correction_from(visit.field("correction").strip() or None, "the correction"),
        visit.field("tag").strip() or None,
        visit.field("note"),
        queue or None,
        visit.field("gold_hash") or None,
    )
    try:
        review_answer(desk.inputs, item, said, desk.reviewed)
    except StoreError as error:
        raise UsageError(str(error)) from error
    answer = RedirectResponse(_afterwards(visit, suite, item, said.who.strip()), 303)
    answer.set_cookie(COOKIE, cookie_of(said.who.strip()), max_age=_A_YEAR_S, httponly=True, samesite="strict")
    return answer


def _afterwards(visit: Visit, suite: str, item: QueueItem, who: str) -> str:
    queue, fresh = visit.field("queue"), desk_of(visit)
    if queue:
        return address_of_next(visit, Desk(fresh.inputs, fresh.reviewed, who), queue, item)
    if visit.field("back") == "disputes":
        return f"/suites/{suite}/disputes"
    partition = Partition(suite, item.model_version, item.eval_date)
    return review_address(partition, item.turn_id, item.sample, parse_qs(visit.field("among")))


PAGES = (Page("/suites/{suite}/review", _ask), Page("/suites/{suite}/review", _say, ("POST",)))
