"""The numbers people look at first, read back from the record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval_pipeline.analysis.comparisons.served import FINGERPRINT, MODEL, Served
from eval_pipeline.core.coverage import Coverage
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.store.coverage import recorded_coverage
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import (
    COMPLEXITY_CEILING,
    COST_PER_CORRECT_ANSWER,
    GENERATIONS,
    GOLD_EDITIONS,
    MODEL_VERSIONS,
    STATISTICS,
)
from eval_pipeline.workspace.planned import planned_scope
from eval_pipeline.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Headline:
    """What one evaluation came to.

    Attributes:
        overall: rows of `statistics` over all turns, by metric.
        cost: the row of `cost_per_correct_answer`.
        ceiling: the row of `complexity_ceiling` on the gold's own axis.
        simulated: the responses were not a real model's.
        scope: `full`, or what part of the suite was run.
        coverage: how far its turns got.
        editions: rows of `gold_editions`; none of an evaluation older than them.
        served: which models answered, in the provider's own words.
    """

    partition: Partition
    overall: Mapping[str, Mapping[str, Any]]
    cost: Mapping[str, Any]
    ceiling: Mapping[str, Any]
    simulated: bool
    scope: str
    coverage: Coverage
    served: Served
    editions: Sequence[Mapping[str, Any]] = ()


def headline(workspace: Workspace, partition: Partition) -> Headline:
    """The headline of a partition whose aggregates are in the record."""
    record, key = workspace.record, RecordKey.of(partition)
    statistics = record.read(STATISTICS, key).to_pylist()
    ceilings = record.read(COMPLEXITY_CEILING, key).to_pylist()
    version = record.read(MODEL_VERSIONS, RecordKey.of_model_version(partition.model_version)).to_pylist()[0]
    return Headline(
        partition,
        {row["metric"]: row for row in statistics if row["split"] == "all"},
        record.read(COST_PER_CORRECT_ANSWER, key).to_pylist()[0],
        ceilings[0],
        version["simulated"],
        planned_scope(workspace, partition),
        recorded_coverage(record, partition),
        Served.of(record.read(GENERATIONS, key, [MODEL, FINGERPRINT])),
        record.read(GOLD_EDITIONS, key).to_pylist() if record.header(GOLD_EDITIONS, key) else (),
    )


def failed_gates(headlines: Sequence[Headline], gates: Mapping[str, float]) -> list[str]:
    """A sentence for every metric that is below its gate.

    Raises:
        UsageError: a gate on something that is no metric.
    """
    sentences = []
    for found in headlines:
        for metric, least in gates.items():
            if metric not in found.overall:
                raise UsageError(f"no metric '{metric}'; metrics: {', '.join(sorted(found.overall))}")
            mean = found.overall[metric]["mean"]
            if mean is None or mean < least:
                shown = "not known" if mean is None else f"{mean:.4f}"
                place = f"{found.partition.suite}, {found.partition.model_version}"
                sentences.append(f"{place}: {metric} is {shown}, the gate is {least:g}")
    return sentences
