"""Aggregates of an evaluation, computed from the per-turn tables; one module for each table."""

from collections.abc import Mapping

from eval_pipeline.analysis.aggregates.agreement import JUDGE_AGREEMENT
from eval_pipeline.analysis.aggregates.base import Aggregate
from eval_pipeline.analysis.aggregates.calibration import CALIBRATION
from eval_pipeline.analysis.aggregates.complexity import ACCURACY, CEILING
from eval_pipeline.analysis.aggregates.contracts import CONTRACTS
from eval_pipeline.analysis.aggregates.cost import COST
from eval_pipeline.analysis.aggregates.coverage import COVERAGE
from eval_pipeline.analysis.aggregates.editions import EDITIONS
from eval_pipeline.analysis.aggregates.errors import ERROR_ANALYSIS
from eval_pipeline.analysis.aggregates.labels import CONFUSION, SCORES
from eval_pipeline.analysis.aggregates.statistics import STATISTICS
from eval_pipeline.tracks.base import Track
from eval_pipeline.workspace.track_tables import INSTALLED_AGGREGATES, turns_table

AGGREGATES: Mapping[str, Aggregate] = {
    aggregate.table.name: aggregate
    for aggregate in (
        STATISTICS,
        COVERAGE,
        ACCURACY,
        COST,
        CEILING,
        ERROR_ANALYSIS,
        CALIBRATION,
        JUDGE_AGREEMENT,
        EDITIONS,
        CONFUSION,
        SCORES,
        CONTRACTS,
    )
}
"""The shipped aggregates by table name. To add one, add a file in this folder and an entry in this tuple."""


def all_aggregates() -> Mapping[str, Aggregate]:
    """Returns every usable aggregate, shipped or installed, by the name of its table."""
    return {**AGGREGATES, **installed_aggregates()}


def installed_aggregates() -> Mapping[str, Aggregate]:
    """Returns the usable aggregates added by packages."""
    return INSTALLED_AGGREGATES.usable()


def aggregates_of(track: Track | None) -> Mapping[str, Aggregate]:
    """Returns the aggregates of a track; for an unreadable suite (None), those common to all tracks."""
    tables = (turns_table(track),) if track else ()
    return {name: found for name, found in all_aggregates().items() if found.fits(tables)}
