"""The most important numbers of an evaluation, read from the record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval_pipeline.analysis.comparisons.served import FINGERPRINT, MODEL, Served
from eval_pipeline.core.covering.coverage import Coverage
from eval_pipeline.core.covering.left_out import CaseCounts
from eval_pipeline.core.covering.population import TRAFFIC
from eval_pipeline.core.model import Partition
from eval_pipeline.store.coverage import recorded_cases, recorded_coverage
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import (
    COMPLEXITY_CEILING,
    COST_PER_CORRECT_ANSWER,
    GENERATIONS,
    GOLD_EDITIONS,
    MODEL_VERSIONS,
    SAMPLED_ESTIMATES,
    STATISTICS,
)
from eval_pipeline.workspace.asked.planned import planned_scope
from eval_pipeline.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Headline:
    """The headline numbers of one evaluation.

    Attributes:
        overall: metric → row of `statistics` over all turns.
        cost: the row of `cost_per_correct_answer`.
        ceiling: the row of `complexity_ceiling` on the gold's own axis.
        simulated: whether a stand-in gave the responses.
        scope: `full`, or the part of the suite that was run.
        coverage: how far its turns got.
        cases: how many cases of the suite it covers, and why others were left out.
        editions: rows of `gold_editions`; empty for evaluations older than that table.
        drawn: rows of `sampled_estimates`; empty unless the cases were drawn.
        served: the models that answered, by the provider's names.
        traffic: metric → row of `statistics` on the traffic that the cases were drawn from; empty unless they were.
    """

    partition: Partition
    overall: Mapping[str, Mapping[str, Any]]
    cost: Mapping[str, Any]
    ceiling: Mapping[str, Any]
    simulated: bool
    scope: str
    coverage: Coverage
    cases: CaseCounts
    served: Served
    editions: Sequence[Mapping[str, Any]] = ()
    drawn: Sequence[Mapping[str, Any]] = ()
    traffic: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def headline(workspace: Workspace, partition: Partition) -> Headline:
    """Reads the headline of an evaluation whose aggregates are recorded."""
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
        recorded_cases(record, partition),
        Served.of(record.read(GENERATIONS, key, [MODEL, FINGERPRINT])),
        record.read(GOLD_EDITIONS, key).to_pylist() if record.header(GOLD_EDITIONS, key) else (),
        record.read(SAMPLED_ESTIMATES, key).to_pylist() if record.header(SAMPLED_ESTIMATES, key) else (),
        {row["metric"]: row for row in statistics if row["split"] == TRAFFIC},
    )
