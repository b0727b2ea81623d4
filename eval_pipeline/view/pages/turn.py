"""A turn: all that is known of it, and the turns before and after it in the filter."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import PlainTextResponse, Response

from eval_pipeline.core.errors import UsageError
from eval_pipeline.view.addresses import turn_address
from eval_pipeline.view.evaluation import Evaluation, evaluation_of
from eval_pipeline.view.filtering.filter import Filter, filter_of
from eval_pipeline.view.filtering.found import order
from eval_pipeline.view.page import NotFoundError, Page, Visit, whole_number
from eval_pipeline.view.parts import PARTS
from eval_pipeline.view.turn_seen import TurnSeen, turn_seen


def _respond(visit: Visit) -> Response:
    evaluation, seen = _seen(visit)
    filtered = filter_of(visit.request.query_params, evaluation.columns)
    shown = [(part, part.values(seen)) for part in PARTS]
    return visit.page(
        "turn.html.j2",
        f"{seen.turn_id} · {evaluation.partition.model_version}",
        seen=seen,
        evaluation=evaluation,
        partition=evaluation.partition,
        filtered=filtered,
        arguments=filtered.arguments,
        parts=[(part, values) for part, values in shown if values is not None],
        around=_around(seen, filtered),
        queue=next((values.get("place") for part, values in shown if part.name == "review" and values), None),
    )


def _response(visit: Visit) -> Response:
    """One text of an attempt, whole, as plain text."""
    _, seen = _seen(visit)
    number, field = whole_number(visit.argument("number", "0")), visit.argument("field", "response")
    if field not in {"response", "reasoning", "prompt", "error_message"}:
        raise UsageError(f"there is no text '{field}'")
    for attempt in seen.attempts:
        if attempt["number"] == number and attempt[field] is not None:
            return PlainTextResponse(attempt[field].encode("utf-8", "replace"))
    raise NotFoundError(f"attempt {number} has no such text")


def _seen(visit: Visit) -> tuple[Evaluation, TurnSeen]:
    evaluation = evaluation_of(visit)
    sample = whole_number(visit.argument("sample", "0"))
    return evaluation, turn_seen(visit, evaluation, visit.argument("turn_id"), sample)


def _around(seen: TurnSeen, filtered: Filter) -> Mapping[str, Any]:
    """Where the turn stands among those of the filter, and addresses of those before and after it."""
    found = order(seen.look, seen.evaluation, filtered)
    place = found.place(seen.turn_id, seen.sample)
    around = (
        {"earlier": None, "later": None}
        if place is None
        else {name: found.at(other) for name, other in (("earlier", place - 1), ("later", place + 1))}
    )
    partition, arguments = seen.evaluation.partition, filtered.arguments
    addresses = {name: turn and turn_address(partition, *turn, arguments) for name, turn in around.items()}
    return {"place": place, "matching": len(found), **addresses}


PAGES = (Page("/suites/{suite}/turn", _respond), Page("/suites/{suite}/turn/text", _response))
