"""Describes verdicts of comparisons and trends in words."""

from collections.abc import Mapping, Sequence
from typing import Any

from eval_pipeline.core.covering.left_out import sentences
from eval_pipeline.reports.comparison.suite import NOT_SIGNIFICANT, SIDES, Row, Standing, SuiteComparison

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
_COUNTED = (
    "n", "accuracy_a", "accuracy_b", "difference", "low", "high", "broken", "fixed", "p_value", "p_exact",
)  # fmt: skip
"""Columns of `model_comparisons` that there are twice, the second with `conservative_` before their names."""
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


def counted_figures(row: Row) -> Sequence[Row]:
    """Returns both figures of a pair, which differ in whether unanswered turns count; only one if none is missing."""
    missing = row["unanswered_a"] or row["unanswered_b"]
    counted = {"": "answered by both"} | ({"conservative_": "unanswered as wrong"} if missing else {})
    return [{"counted": told, **{name: row[f"{lead}{name}"] for name in _COUNTED}} for lead, told in counted.items()]


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
