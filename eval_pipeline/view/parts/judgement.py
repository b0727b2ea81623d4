"""The section with the LLM judge's verdict and its reasoning."""

from collections.abc import Mapping
from typing import Any

from eval_pipeline.view.part import Part
from eval_pipeline.view.turn_seen import TurnSeen


def _values(seen: TurnSeen) -> Mapping[str, Any] | None:
    judgements = seen.rows("judgements", "model")
    repeats = seen.rows("judge_repeats", "repeat")
    return {"judgements": judgements, "repeats": repeats} if judgements or repeats else None


PART = Part("judgement", "What the judge says", "parts/judgement.html.j2", _values, exported=True)
