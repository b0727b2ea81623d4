"""The section with people's reviews of the answer, and a form to add one."""

from collections.abc import Mapping
from typing import Any

from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.ids import json_hash, json_text, parse_json
from eval_pipeline.operations.reviews.reviewing import known_tags, progress_of
from eval_pipeline.suites.reviews.review import AnswerKey, response_hash, verdict_of
from eval_pipeline.tracks.capabilities import Audits
from eval_pipeline.view.reviewing import Desk, desk_of, item_address
from eval_pipeline.view.turn.seen import Part, TurnSeen

_MOST_TAGS = 50


def _values(seen: TurnSeen) -> Mapping[str, Any]:
    try:
        desk = desk_of(seen.visit)
        track = desk.inputs.track
    except EvalError as error:  # the suite is gone or broken, but its turns can still be viewed
        return {"problem": str(error)}
    seen_hash = response_hash(seen.attempts[-1]["response"] if seen.attempts else None)
    partition = seen.evaluation.partition
    key = AnswerKey(seen.turn_id, partition.model_version, seen_hash)
    current = desk.reviewed.current
    reviews = [review for review in current if review.answer == key]
    mine = next((review for review in reviews if review.who == desk.who), None)
    back = seen.visit.argument("back")
    return {
        "problem": "",
        "desk": desk,
        "reviews": reviews,
        "mine": mine,
        "correction": json_text(mine.correction) if mine and mine.correction is not None else "",
        # Reviewers see the reviews of others only after adding their own; otherwise their agreement would mean nothing.
        "told": mine is not None or back == "disputes",
        "together": verdict_of(reviews) if reviews else None,
        "elsewhere": len([one for one in current if one.turn_id == seen.turn_id and one.answer != key]),
        "response_hash": seen_hash,
        "gold_hash": json_hash(parse_json(seen.gold["gold"])) if seen.gold else "",
        "gold_fields": list(track.gold_fields) if isinstance(track, Audits) else [],
        "tags": known_tags(desk.reviewed)[:_MOST_TAGS],
        "back": back,
        "place": _place(seen, desk, key),
    }


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


PART = Part("review", "Reviews", "parts/review.html.j2", _values)
