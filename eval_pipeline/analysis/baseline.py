"""The baseline gate: is a model version significantly worse than another on the turns both answered?"""

from eval_pipeline.analysis.comparisons.shown import compare_with
from eval_pipeline.core.model import Partition
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import GENERATIONS, TURN_RESULTS
from eval_pipeline.workspace.scope import FULL
from eval_pipeline.workspace.workspace import Workspace


def newest_partition(workspace: Workspace, suite: str, model_version: str) -> Partition | None:
    """The newest evaluation of a suite and model version in the record: of the full suite, else of a part.

    As the `latest_*` views choose.
    """
    dates = [
        key.eval_date
        for key in workspace.record.partitions(TURN_RESULTS)
        if (key.suite, key.model_version) == (suite, model_version) and key.eval_date is not None
    ]
    newest_first = [Partition(suite, model_version, day) for day in sorted(dates, reverse=True)]
    return next((found for found in newest_first if _is_full(workspace, found)), next(iter(newest_first), None))


def _is_full(workspace: Workspace, partition: Partition) -> bool:
    header = workspace.record.header(GENERATIONS, RecordKey.of(partition))
    return header is not None and header.made_from.get("scope") == FULL


def baseline_verdict(workspace: Workspace, partition: Partition, baseline: str) -> str | None:
    """A sentence where the partition is significantly worse than the baseline's latest evaluation, else None.

    It goes by the conservative figure: a model that does not answer must not pass for want of answers.
    """
    place = f"{partition.suite}, {partition.model_version}"
    row = compare_with(workspace, partition, baseline)
    if row is None:
        return f"{place}: the baseline {baseline} has no evaluation of this suite"
    if row["conservative_verdict"] is None:
        return f"{place}: no comparison with {baseline}: {row['reason']}"
    if row["conservative_verdict"] != "a_better":
        return None
    ends = f"[{row['conservative_low']:.4f}, {row['conservative_high']:.4f}]"
    sentence = (
        f"{place}: {-row['conservative_difference']:.4f} worse than {baseline} on {row['conservative_n']} turns {ends}"
    )
    return f"{sentence}; {row['note']}" if row["note"] else sentence
