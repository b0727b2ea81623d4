"""The section with every attempt: the response, its result and its cost."""

from collections.abc import Mapping
from typing import Any

from eval_pipeline.core.ids import parse_json
from eval_pipeline.view.part import Part
from eval_pipeline.view.turn_seen import TurnSeen


def _values(seen: TurnSeen) -> Mapping[str, Any]:
    checked: dict[int, list[dict[str, Any]]] = {}
    for row in seen.rows("validation", "number"):
        checked.setdefault(row["number"], []).append({**row, "errors": parse_json(row["errors"])})
    return {"checked": checked}


PART = Part("attempts", "Attempts", "parts/attempts.html.j2", _values, exported=True)
