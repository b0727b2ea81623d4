"""What each metric says, and why."""

from collections.abc import Mapping
from typing import Any

from eval_pipeline.view.part import Part
from eval_pipeline.view.turn_seen import TurnSeen


def _values(seen: TurnSeen) -> Mapping[str, Any]:
    return {"metrics": seen.rows("metrics", "metric"), "evidence": seen.rows("evidence", "kind")}


PART = Part("metrics", "What the metrics say", "parts/metrics.html.j2", _values)
