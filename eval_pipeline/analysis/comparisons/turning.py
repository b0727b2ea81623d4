"""Swaps the two sides of a comparison without computing anything anew."""

from collections.abc import Mapping
from typing import Any

from eval_pipeline.analysis.comparisons.pairs import COSTS

_BETTER = {"a_better": "b_better", "b_better": "a_better"}
_DIFFERENCES = ("", "conservative_", *(f"{cost}_difference_" for cost in COSTS))


def turned(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a row of `model_comparisons` with its two evaluations swapped."""
    found = dict(row)
    for name in row:
        stem = name.removesuffix("_a")
        if stem != name:
            found[name], found[f"{stem}_b"] = row[f"{stem}_b"], row[name]
    for lead in ("", "conservative_"):
        found[f"{lead}broken"], found[f"{lead}fixed"] = row[f"{lead}fixed"], row[f"{lead}broken"]
        found[f"{lead}verdict"] = _BETTER.get(row[f"{lead}verdict"], row[f"{lead}verdict"])
        found[f"{lead}difference"] = _negative(row[f"{lead}difference"])
    found["broken_turns"], found["fixed_turns"] = row["fixed_turns"], row["broken_turns"]
    for cost in COSTS:
        found[f"{cost}_difference"] = _negative(row[f"{cost}_difference"])
    for lead in _DIFFERENCES:
        found[f"{lead}low"], found[f"{lead}high"] = _negative(row[f"{lead}high"]), _negative(row[f"{lead}low"])
    found["low_corrected"], found["high_corrected"] = _negative(row["high_corrected"]), _negative(row["low_corrected"])
    return found


def _negative(value: float | None) -> float | None:
    return None if value is None else 0.0 - value
