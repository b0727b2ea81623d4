"""The baseline gate: whether a model version is significantly worse than another one."""

from collections.abc import Mapping
from typing import Any

from eval_pipeline.analysis.comparisons.chosen.baselines import read_baseline
from eval_pipeline.analysis.comparisons.chosen.shown import compare_with, parse_references
from eval_pipeline.analysis.draws.reading import look_at_all
from eval_pipeline.core import shown
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import GENERATIONS, SAMPLED_ESTIMATES, TURN_RESULTS
from eval_pipeline.workspace.asked.scope import FULL, Scope
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.workspace import Workspace


def newest_partition(workspace: Workspace, suite: str, model_version: str) -> Partition | None:
    """Returns the newest full evaluation of a suite and model version, or else the newest partial one.

    This is the same choice as in the `latest_*` views.
    """
    dates = [
        key.eval_date
        for key in workspace.record.partitions(TURN_RESULTS, RecordKey(suite, model_version))
        if key.eval_date is not None
    ]
    newest_first = [Partition(suite, model_version, day) for day in sorted(dates, reverse=True)]
    return next((found for found in newest_first if _is_full(workspace, found)), next(iter(newest_first), None))


def _is_full(workspace: Workspace, partition: Partition) -> bool:
    header = workspace.record.header(GENERATIONS, RecordKey.of(partition))
    return header is not None and header.made_from.get("scope") == FULL


def check_baseline(workspace: Workspace, baseline: str) -> None:
    """Raises UsageError if a baseline is no reference to an evaluation, or a file that cannot be read."""
    (reference,) = parse_references(workspace, [baseline])
    if reference.file is not None:
        read_baseline(reference.file)


def baseline_verdict(workspace: Workspace, partition: Partition, baseline: str) -> str | None:
    """Returns a sentence if the evaluation is significantly worse than the baseline, else None.

    The baseline is any reference; a model version stands for its latest evaluation.
    The conservative figure is used, so that a model cannot pass by not answering. Drawn turns have been compared with
    the baseline while they were asked.
    """
    place = f"{partition.suite}, {partition.model_version}"
    key = RecordKey.of(partition)
    looks = workspace.record.read(SAMPLED_ESTIMATES, key).to_pylist() if is_drawn(workspace, partition) else []
    if looks:
        return _drawn_verdict(place, max(looks, key=lambda row: (row["look"], row["metric"])), baseline)
    newest = newest_partition(workspace, partition.suite, baseline)
    last = look_at_all(Inputs.of(workspace, partition), newest) if newest is not None else None
    if last is not None and last.difference is not None:
        by = shown.points_text(last.difference.value, last.difference.low, last.difference.high)
        looked = f"looked at {shown.counted(last.looks, 'time', 'times')}"
        told = f"{place}: worse than {baseline} on {shown.turns(last.turns)}, {looked}: {by}"
        return told if last.verdict == "worse" else None
    try:
        row = compare_with(workspace, partition, baseline)
    except UsageError as error:  # one that names a certain evaluation need not have one of every suite
        return f"{place}: {error}"
    if row is None:
        if newest is not None and is_drawn(workspace, newest):
            return f"{place}: of the baseline {baseline}, only drawn cases of this suite were asked; run it in full"
        return f"{place}: the baseline {baseline} has no evaluation of this suite"
    if row["conservative_verdict"] is None:
        return f"{place}: no comparison with {baseline}: {row['reason']}"
    if row["conservative_verdict"] != "a_better":
        return None
    by = shown.points_text(*(row[f"conservative_{name}"] for name in ("difference", "low", "high")))
    sentence = f"{place}: worse than {baseline} on {shown.turns(row['conservative_n'])}: {by}"
    return f"{sentence}; {row['note']}" if row["note"] else sentence


def is_drawn(workspace: Workspace, partition: Partition) -> bool:
    """Whether only drawn cases of the evaluation were asked."""
    header = workspace.record.header(GENERATIONS, RecordKey.of(partition))
    return header is not None and Scope.from_label(header.made_from.get("scope", FULL)).is_drawn


def _drawn_verdict(place: str, row: Mapping[str, Any], baseline: str) -> str | None:
    """Returns a sentence if the last look found the evaluation worse, or had no baseline to compare with."""
    if row["metric"] != "difference":
        return f"{place}: its turns were drawn without regard to {baseline}; run in full to compare"
    if row["verdict"] != "worse":
        return None
    by = shown.points_text(row["value"], row["low"], row["high"])
    return f"{place}: worse than {baseline}, by {shown.counted(row['turns'], 'drawn turn', 'drawn turns')}: {by}"
