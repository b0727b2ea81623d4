"""The page of a turn: everything known about it, with links to the previous and next turn in the filter."""

from starlette.responses import PlainTextResponse, Response

from eval_pipeline.core.errors import UsageError
from eval_pipeline.view.addresses import TOLD, review_address
from eval_pipeline.view.evaluation import StoredEvaluation, evaluation_of
from eval_pipeline.view.page import NotFoundError, Page, Visit, whole_number
from eval_pipeline.view.turn.around import around
from eval_pipeline.view.turn.parts import sections_of
from eval_pipeline.view.turn.seen import TurnSeen, turn_seen


def _respond(visit: Visit) -> Response:
    evaluation, seen = seen_of(visit)
    among = around(seen)
    return visit.page(
        "turn.html.j2",
        f"{seen.turn_id} · {evaluation.partition.model_version}",
        seen=seen,
        evaluation=evaluation,
        partition=evaluation.partition,
        parts=sections_of(seen),
        around=among,
        review=review_address(evaluation.partition, seen.turn_id, seen.sample, {**among.arguments, TOLD: "1"}),
    )


def _response(visit: Visit) -> Response:
    """Returns one full text of an attempt as plain text."""
    _, seen = seen_of(visit)
    number, field = whole_number(visit.argument("number", "0")), visit.argument("field", "response")
    if field not in {"response", "reasoning", "prompt", "error_message"}:
        raise UsageError(f"there is no text '{field}'")
    for attempt in seen.attempts:
        if attempt["number"] == number and attempt[field] is not None:
            return PlainTextResponse(attempt[field].encode("utf-8", "replace"))
    raise NotFoundError(f"attempt {number} has no such text")


def seen_of(visit: Visit) -> tuple[StoredEvaluation, TurnSeen]:
    """Returns the turn that an address names. Raises a NotFoundError if there is none."""
    evaluation = evaluation_of(visit)
    sample = whole_number(visit.argument("sample", "0"))
    return evaluation, turn_seen(visit, evaluation, visit.argument("turn_id"), sample)


PAGES = (Page("/suites/{suite}/turn", _respond), Page("/suites/{suite}/turn/text", _response))
