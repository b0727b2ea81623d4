"""Describes verdicts of comparisons and trends in words."""

from collections.abc import Mapping
from typing import Any

from eval_pipeline.core.covering.left_out import sentences
from eval_pipeline.reports.comparison.suite import NOT_SIGNIFICANT, SIDES, Row, Standing, SuiteComparison
from eval_pipeline.reports.queries import literal

SIMULATED_AMONG = "SIMULATED model versions are among these: they are stand-ins, and say nothing about any real model."
READING = (
    "A difference is that of the second model version minus the first, on the turns that both answered, turn by turn; "
    "its error is clustered by conversation. Beside it stands the conservative one, on all turns scored for both, "
    "where a turn without an answer is wrong.",
    "Both are tested by t and by exact sign flips of whole conversations. p is the largest of these, corrected by Holm "
    "over the pairs; two model versions are called different only where it is below 5% and the corrected intervals of "
    "both differences exclude 0 on one side.",
    "The smallest difference to be found is the true difference that this suite would have shown with a chance of 80%.",
)
REACHED = ("planned", "asked", "answered", "readable", "n")
"""Columns of `trends` that tell how far the turns got; `n` is the number of scored turns."""
_TRENDS = {
    "start": "first evaluation",
    "break": "break: not comparable with the date before",
    "loss": "significantly worse than the date before",
    "gain": "significantly better than the date before",
    "drift_down": "significantly worse than the first date",
    "drift_up": "significantly better than the first date",
    "no_change": "no significant change",
}


def comparison_warnings(compared: SuiteComparison) -> list[str]:
    """Returns what a reader must know before trusting any figure: stand-ins, and cases that were left out."""
    simulated = any(found.row["simulated"] for found in compared.standings)
    left_out = sentences([(found.model_version, compared.cases_of(found)) for found in compared.standings])
    return [SIMULATED_AMONG] * simulated + [f"CASES LEFT OUT: {sentence}" for sentence in left_out]


def pair_names(row: Mapping[str, Any]) -> tuple[str, str]:
    """Returns what the two of a comparison are called: names that tell them apart, if it has some."""
    return row.get("name_a") or row["model_a"], row.get("name_b") or row["model_b"]


def is_of_file(row: Mapping[str, Any]) -> bool:
    """Whether one of a comparison comes from a baseline file, so that the record need not have it."""
    return any(row.get(f"file_{side}") is not None for side in SIDES)


def pair_verdict(row: Row) -> str:
    """Returns which of the two is better (if that is known), with any remark."""
    return f"{_verdict(row)} ({row['note']})" if row["note"] else _verdict(row)


def _verdict(row: Row) -> str:
    if row["verdict"] is None:
        return f"not tested: {row['reason']}"
    if row["verdict"] == NOT_SIGNIFICANT:
        return "not significant"
    a, b = pair_names(row)
    return f"{a if row['verdict'] == 'a_better' else b} is better"


def trend_verdict(row: Row) -> str:
    """Returns what changed on a date."""
    if row["verdict"] is None:
        return f"not tested: {row['reason']}"
    text = _TRENDS[row["verdict"]]
    if row["open_loss_date"] and row["verdict"] != "loss":
        text += f"; the loss of {row['open_loss_date']} is still open"
    return f"{text} ({row['break_reason']} changed)" if row["break_reason"] else text


def equals_text(standing: Standing) -> str:
    """Returns the model versions from which it does not differ significantly, and those not compared with it."""
    untested = f"; not compared with {', '.join(standing.untested)}" if standing.untested else ""
    return f"{', '.join(standing.equals) or 'none'}{untested}"


POINTS = (
    "difference", "low_corrected", "high_corrected", "conservative_difference", "conservative_low", "conservative_high",
    "minimum_detectable_difference",
)  # fmt: skip
"""Columns of `model_comparisons` that the workbook shows in percentage points."""


def pairs_query(suite: str, condition: str = "") -> str:
    """Returns the query for rows of `model_comparisons`."""
    also = f" AND {condition}" if condition else ""
    in_points = ", ".join(f"100 * {name} AS {name}_points" for name in POINTS)
    return (
        f"SELECT *, {in_points} FROM model_comparisons WHERE suite = {literal(suite)}{also} ORDER BY model_a, model_b"
    )


def trends_query(suite: str) -> str:
    """Returns the query for rows of `trends`, with costs per turn."""
    return (
        "SELECT *, 100 * previous_difference AS previous_points, 100 * first_difference AS first_points, "
        "tokens_total / n AS tokens_a_turn, usd_total / n AS usd_a_turn "
        f"FROM trends WHERE suite = {literal(suite)} ORDER BY model_version, eval_date"
    )
