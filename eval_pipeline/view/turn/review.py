"""People's reviews of an answer: the section of a turn's page, and what the page that asks for a review needs."""

from collections.abc import Mapping
from typing import Any

from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.ids import json_hash, json_text, parse_json
from eval_pipeline.operations.reviews.reviewing import known_tags, progress_of
from eval_pipeline.suites.reviews.review import AnswerKey, response_hash, verdict_of
from eval_pipeline.tracks.capabilities import Audits
from eval_pipeline.view.reviewing import Desk, desk_of, item_address
from eval_pipeline.view.turn.seen import PageSection, TurnSeen

_MOST_TAGS = 50


def said_of(seen: TurnSeen) -> Mapping[str, Any]:
    """Returns what people say of an answer, as far as the reviewer may know; only `problem` if the suite is broken."""
    try:
        desk = desk_of(seen.visit)
    except EvalError as error:  # the suite is gone or broken, but its turns can still be viewed
        return {"problem": str(error)}
    key, current = _key(seen), desk.reviewed.current
    reviews = [review for review in current if review.answer == key]
    mine = next((review for review in reviews if review.who == desk.who), None)
    return {
        "problem": "",
        "reviews": reviews,
        "mine": mine,
        # Reviewers see the reviews of others only after adding their own; otherwise their agreement would mean nothing.
        "told": mine is not None or seen.visit.argument("back") == "disputes",
        "together": verdict_of(reviews) if reviews else None,
        "elsewhere": len([one for one in current if one.turn_id == seen.turn_id and one.answer != key]),
    }


def form_of(seen: TurnSeen) -> Mapping[str, Any]:
    """Returns what the form to review an answer holds. Raises an EvalError if the suite is gone or broken."""
    desk = desk_of(seen.visit)
    key, track = _key(seen), desk.inputs.track
    return {
        "who": desk.who,
        "response_hash": key.response_hash,
        "gold_hash": json_hash(parse_json(seen.gold["gold"])) if seen.gold else "",
        "gold_fields": list(track.gold_fields) if isinstance(track, Audits) else [],
        "tags": known_tags(desk.reviewed)[:_MOST_TAGS],
        "back": seen.visit.argument("back"),
        "place": _place(seen, desk, key),
    }


def correction_text(said: Mapping[str, Any]) -> str:
    """Returns the correction of the gold that the reviewer has given, as JSON; empty if there is none."""
    mine = said["mine"]
    return json_text(mine.correction) if mine and mine.correction is not None else ""


def _key(seen: TurnSeen) -> AnswerKey:
    response = seen.attempts[-1]["response"] if seen.attempts else None
    return AnswerKey(seen.turn_id, seen.evaluation.partition.model_version, response_hash(response))


def _place(seen: TurnSeen, desk: Desk, key: AnswerKey) -> Mapping[str, Any] | None:
    """Returns the answer's place in the queue that the address names.

    None if it names none or the answer is not in it.
    """
    name, suite = seen.visit.argument("queue"), seen.evaluation.partition.suite
    progress = next((one for one in progress_of(desk.reviewed) if one.queue.id == name), None)
    if progress is None:
        return None
    items = list(progress.queue.items)
    # Several samples may have the same response; each is an item of its own.
    sample, day = seen.sample, seen.evaluation.partition.eval_date
    alike = [index for index, item in enumerate(items) if item.answer == key]
    same = [index for index in alike if (items[index].sample, items[index].eval_date) == (sample, day)]
    here = next(iter(same or alike), None)
    if here is None:
        return None
    done = sum(desk.who in people for people in progress.reviewed.values())
    following = items[(here + 1) % len(items)]
    return {
        "queue": name,
        "number": here + 1,
        "size": len(items),
        "done": done,
        "before": item_address(suite, items[here - 1], name) if here else None,
        "after": item_address(suite, following, name) if len(items) > 1 else None,
    }


PART = PageSection("review", "Reviews", "parts/review.html.j2", said_of)
