"""The section with the value of each metric and its reason."""

from collections.abc import Mapping
from typing import Any

from eval_pipeline.stages.scoring.metric_runner import UNSCORED
from eval_pipeline.tracks.registry import all_tracks
from eval_pipeline.view.part import Part
from eval_pipeline.view.turn_seen import TurnSeen

_TELLING = ("label", "reason", "details", "error")
"""Columns that explain the value."""


def _values(seen: TurnSeen) -> Mapping[str, Any]:
    ours = [track for track in all_tracks() if track.name == seen.evaluation.track]
    apart = {metric.name for track in ours for metric in track.metrics if metric.apart}
    rows = [row for row in seen.rows("metrics", "metric") if row["metric"] not in apart]
    unscored = [row for row in rows if (row["reason"] or "").startswith(UNSCORED)]
    found = [row for row in rows if row not in unscored]
    told = [row for row in found if any(row[name] is not None for name in _TELLING)]
    plain = [row for row in found if row not in told]
    return {"unscored": unscored, "told": told, "plain": plain, "evidence": seen.rows("evidence", "kind")}


PART = Part("metrics", "What the metrics say", "parts/metrics.html.j2", _values, exported=True)
