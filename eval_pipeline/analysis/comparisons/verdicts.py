"""What asset checks and the command line say of trends."""

from datetime import date
from typing import Any

from eval_pipeline.analysis.comparisons.making import newest_trends
from eval_pipeline.analysis.comparisons.trends import DRIFT_DOWN, LOSS
from eval_pipeline.core.model import Json
from eval_pipeline.stages.checks.verdicts import Verdict
from eval_pipeline.workspace.inputs import Inputs


def check_no_loss(inputs: Inputs, day: date | None = None) -> Verdict:
    """No model version last evaluated on the day, else on the newest date, is worse than on the date before."""
    return _check(inputs, LOSS, "previous", "the date before", day)


def check_no_drift(inputs: Inputs) -> Verdict:
    """No model version evaluated on the newest date is significantly worse than on its first date."""
    return _check(inputs, DRIFT_DOWN, "first", "the first date")


def _check(inputs: Inputs, bad: str, name: str, against: str, day: date | None = None) -> Verdict:
    rows = newest_trends(inputs.workspace, inputs.suite)
    asked = day or max((row["eval_date"] for row in rows), default=None)
    # A loss is told on the night on which it shows, not again with every other model version that is run later.
    rows = [row for row in rows if row["eval_date"] == asked]
    tested = sum(row[f"{name}_verdict"] is not None for row in rows)
    worse = [_sentence(row, name) for row in rows if row["verdict"] == bad]
    facts: dict[str, Json] = {"model_versions": len(rows), "tested": tested, "worse": len(worse)}
    if worse:
        return Verdict(False, "; ".join(worse), facts)
    if not tested:
        return Verdict(True, f"no model version has an earlier evaluation to test against {against}", facts)
    return Verdict(True, f"none of {tested} model versions is significantly worse than on {against}", facts)


def _sentence(row: dict[str, Any], name: str) -> str:
    points, low, high = (100 * row[f"{name}_{end}"] for end in ("difference", "low", "high"))
    return (
        f"{row['model_version']}: {points:+.1f} points [{low:+.1f}, {high:+.1f}] against {row[f'{name}_date']} on "
        f"{row[f'{name}_n']} turns, corrected p {row[f'{name}_p_corrected']:.2g} ({row[f'{name}_broken']} broken, "
        f"{row[f'{name}_fixed']} fixed)"
    )
