"""Describes evaluations of drawn cases in words (docs/adaptive.md)."""

from collections.abc import Mapping, Sequence
from typing import Any

from eval_pipeline.core import shown
from eval_pipeline.core.covering.until import Until

Row = Mapping[str, Any]


def difference_text(row: Row) -> str:
    """Returns the difference in percentage points with its interval, and from how many turns it is estimated."""
    against = row["baseline"].rpartition(" ")[2]
    return (
        f"{shown.points_text(row['value'], row['low'], row['high'])} against the full evaluation of {against}, "
        f"estimated from a part of the suite ({row['turns']:,} of {row['suite_turns']:,} turns)"
    )


def drawn_text(rows: Sequence[Row]) -> str:
    """Returns what is known about the whole suite, from rows of `sampled_estimates`; empty without rows."""
    if not rows:
        return ""
    last = max(row["look"] for row in rows)
    found = {row["metric"]: row for row in rows if row["look"] == last}
    correct = found["correct"]
    share = shown.estimate(correct["value"], correct["low"], correct["high"])
    chosen = Until.parse(correct["until"]).chosen(correct["evaluations"] or 0)
    asked = f"{correct['turns']:,} of {correct['suite_turns']:,} turns asked"
    parts = [
        f"{asked} until '{correct['until']}', {chosen}",
        f"right in the whole suite {share}, as from a uniform draw of {shown.count(correct['effective'])} turns",
    ]
    if (difference := found.get("difference")) is not None:
        told = shown.points_text(difference["value"], difference["low"], difference["high"])
        parts.append(f"{difference['verdict']}: {told} against {difference['baseline']}")
    parts.append(f"stopped: {correct['stopped']}" if correct["stopped"] else "not finished: run again to go on")
    return "; ".join(parts)
