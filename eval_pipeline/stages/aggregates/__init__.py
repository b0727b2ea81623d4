"""Aggregates of a partition: one module a table, all from the per-turn tables."""

from collections.abc import Mapping

from eval_pipeline.core.model import Partition
from eval_pipeline.stages.aggregates import base
from eval_pipeline.stages.aggregates.base import Aggregate, make
from eval_pipeline.stages.aggregates.complexity import ACCURACY, CEILING
from eval_pipeline.stages.aggregates.cost import COST
from eval_pipeline.stages.aggregates.errors import ERROR_ANALYSIS
from eval_pipeline.stages.aggregates.statistics import STATISTICS
from eval_pipeline.stages.workspace import StageResult, Workspace

AGGREGATES: Mapping[str, Aggregate] = {
    aggregate.table.name: aggregate for aggregate in (STATISTICS, ACCURACY, COST, CEILING, ERROR_ANALYSIS)
}
"""Every aggregate by the name of its table; adding one takes a file here and a place in this tuple."""


def aggregate(workspace: Workspace, partition: Partition, name: str) -> StageResult:
    """Makes one aggregate table of the partition."""
    return make(workspace, partition, AGGREGATES[name])


def aggregates_current(workspace: Workspace, partition: Partition) -> bool:
    """Whether the record holds every aggregate of the partition as it would be made now."""
    return all(base.is_current(workspace, partition, found) for found in AGGREGATES.values())
