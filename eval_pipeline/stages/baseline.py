"""The baseline gate: is a model version significantly worse than another on the turns both answered?"""

import numpy as np

from eval_pipeline.core.model import Partition
from eval_pipeline.stages.scope import FULL
from eval_pipeline.stages.workspace import Workspace
from eval_pipeline.statistics import Estimate, estimate_mean
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import GENERATIONS, TURN_RESULTS

COLUMNS = ["turn_id", "sample", "cluster", "correct"]


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


def paired_difference(workspace: Workspace, partition: Partition, baseline: Partition) -> Estimate:
    """Mean difference of the primary metric (partition − baseline) over common turns, with its clustered interval."""
    record = workspace.record
    ours = record.read(TURN_RESULTS, RecordKey.of(partition), COLUMNS).to_pylist()
    theirs = record.read(TURN_RESULTS, RecordKey.of(baseline), COLUMNS).to_pylist()
    before = {(row["turn_id"], row["sample"]): row["correct"] for row in theirs}
    common = [row for row in ours if (row["turn_id"], row["sample"]) in before]
    differences = [float(row["correct"]) - float(before[row["turn_id"], row["sample"]]) for row in common]
    names = {name: code for code, name in enumerate(dict.fromkeys(row["cluster"] for row in common))}
    clusters = np.array([names[row["cluster"]] for row in common], dtype=np.int64)
    return estimate_mean(np.array(differences, dtype=np.float64), clusters)


def baseline_verdict(workspace: Workspace, partition: Partition, baseline: str) -> str | None:
    """A sentence where the partition is significantly worse than the baseline's newest evaluation, else None."""
    other = newest_partition(workspace, partition.suite, baseline)
    place = f"{partition.suite}, {partition.model_version}"
    if other is None:
        return f"{place}: the baseline {baseline} has no evaluation of this suite"
    found = paired_difference(workspace, partition, other)
    if found.mean is None or found.low is None or found.high is None:
        return f"{place}: no comparison with {baseline}: {found.reason}"
    if found.high >= 0:
        return None
    return f"{place}: {-found.mean:.4f} worse than {baseline} on {found.n} turns [{found.low:.4f}, {found.high:.4f}]"
