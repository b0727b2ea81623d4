"""The section with the cards that the track makes for a turn."""

import logging
from collections.abc import Mapping
from typing import Any

from eval_pipeline.core.errors import EvalError
from eval_pipeline.tracks.abilities import cards_of
from eval_pipeline.tracks.capabilities import Explains
from eval_pipeline.view.part import Part
from eval_pipeline.view.turn_seen import TurnSeen, seen_by_track

_log = logging.getLogger(__name__)


def _values(seen: TurnSeen) -> Mapping[str, Any] | None:
    """Returns the cards, or the reason why they cannot be made; the rest of the page does not need them."""
    try:
        found = seen_by_track(seen)
        if found is None:
            return {"cards": (), "missing": "The suite has this turn no more, so that its track cannot show it."}
        track, turn = found
        if not isinstance(track, Explains):
            return None
        return {"cards": cards_of(track, turn), "missing": ""}
    except EvalError as error:
        return {"cards": (), "missing": f"The track cannot show this turn: {error}"}
    except Exception as error:  # a track may be third-party code; its errors must not prevent the rest of the page
        _log.exception("the cards of %s", seen.turn_id)
        return {"cards": (), "missing": f"The track cannot show this turn ({type(error).__name__})."}


PART = Part("cards", "Question and answer, seen by the track", "parts/cards.html.j2", _values, exported=True)
