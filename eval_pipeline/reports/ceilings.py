"""Describes the results on complexity in words."""

from eval_pipeline.reports.evaluation import Row

_AXES = {
    "operations": "operations of the gold program",
    "plan_operations": "operations of the plan",
    "turn_number": "turn number (from 0)",
}


def axis_title(axis: str) -> str:
    """Returns a readable title for an axis of complexity."""
    return _AXES.get(axis, axis.replace("_", " "))


def ceiling_sentence(row: Row) -> str:
    """Returns a row of `complexity_ceiling` as a phrase, such as `ceiling 3 [2, 4] at 50% accuracy`."""
    at = f"at {row['threshold']:.0%} accuracy"
    if row["ceiling"] is None:
        return str(row["reason"] or f"{row['verdict']} ({at})")
    low = "…" if row["ceiling_low"] is None else f"{row['ceiling_low']:g}"
    high = "…" if row["ceiling_high"] is None else f"{row['ceiling_high']:g}"
    return f"ceiling {row['ceiling']:g} [{low}, {high}] {at}"
