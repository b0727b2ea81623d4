"""The aggregate `calibration`: how well the model's stated confidence predicts correctness (docs/sql.md)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eval_pipeline.analysis.aggregates.base import Row, Turns
from eval_pipeline.statistics.calibration import NOMINAL, NOMINAL_VERSION, Calibration, calibrate
from eval_pipeline.statistics.intervals import estimate_rate

ALL = "all"


def calibration_rows(turns: Turns) -> list[Row]:
    """Returns one row with the scores, then one for each level that occurs."""
    said = turns.wide["confidence"].to_pylist()
    right = turns.floats("correct")
    found = calibrate(said, right)
    levels = np.array([level or "" for level in said], dtype=object)
    nominal = {level.level: level.nominal for level in found.levels}
    groups = [(ALL, levels != "")] + [(level, levels == level) for level in NOMINAL if level in nominal]
    rows = []
    for level, mask in groups:
        estimate = estimate_rate(right[mask], turns.clusters[mask])
        row: Row = {
            "level": level,
            "nominal": nominal.get(level),
            "n": estimate.n,
            "clusters": estimate.clusters,
            "accuracy": estimate.mean,
            "se": estimate.se,
            "low": estimate.low,
            "high": estimate.high,
        }
        rows.append(row | (_scores(found) if level == ALL else dict.fromkeys(_scores(found))))
    return rows


def _scores(found: Calibration) -> Row:
    brier = found.brier
    return {
        "reliability": found.reliability,
        "resolution": found.resolution,
        "calibration_score": found.score,
        "ece": found.ece,
        "brier": brier.score if brier else None,
        "brier_reliability": brier.reliability if brier else None,
        "brier_resolution": brier.resolution if brier else None,
        "brier_uncertainty": brier.uncertainty if brier else None,
        "verdict": found.verdict,
        "warning": found.warning,
        "mapping_version": NOMINAL_VERSION,
        "reason": found.reason,
    }


def headline(rows: Sequence[Row]) -> Mapping[str, Any]:
    """Returns the calibration among the rows' numbers."""
    names = ("n", "calibration_score", "reliability", "resolution", "verdict", "warning", "reason")
    return {name: rows[0][name] for name in names}
