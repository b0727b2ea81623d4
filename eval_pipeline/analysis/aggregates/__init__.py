"""Aggregates of an evaluation, computed from the per-turn tables; one module for each table."""

from collections.abc import Mapping

from eval_pipeline.analysis.aggregates.aggregate import Aggregate
from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.store import tables
from eval_pipeline.tracks.base import Track
from eval_pipeline.workspace.tabled.track_tables import INSTALLED_AGGREGATES, turns_table

_COUNTED = (
    tables.CASES,
    tables.LEFT_OUT_CASES,
    tables.GOLD_OVERRIDES,
    tables.GENERATIONS,
    tables.METRICS,
    tables.RECOVERY_ATTEMPTS,
)
_EDITIONS = (
    tables.CASES,
    tables.TURNS,
    tables.GOLD_OVERRIDES,
    tables.SUITE_EDITIONS,
    tables.STATISTICS,
    tables.GENERATIONS,
    tables.RECOVERY_ATTEMPTS,
)
_LABELS = ("expected_label", "answer_label")


def _here(place: str) -> Later:
    return Later(f"eval_pipeline.analysis.aggregates.{place}")


AGGREGATES: Mapping[str, Aggregate] = {
    aggregate.table.name: aggregate
    for aggregate in (
        Aggregate(
            tables.STATISTICS,
            _here("statistics:statistics_rows"),
            _here("statistics:headline"),
            reads=(tables.CASES, tables.GENERATIONS),
            knows_draws=True,
            beside=(tables.SAMPLED_ESTIMATES, _here("statistics:_look_rows")),
        ),
        Aggregate(
            tables.COVERAGE,
            _here("coverage:coverage_rows"),
            _here("coverage:headline"),
            reads=_COUNTED,
            knows_draws=True,
        ),
        Aggregate(
            tables.ACCURACY_BY_COMPLEXITY, _here("complexity:accuracy_rows"), _here("complexity:accuracy_headline")
        ),
        Aggregate(tables.COST_PER_CORRECT_ANSWER, _here("cost:cost_rows"), _here("cost:headline"), knows_draws=True),
        Aggregate(tables.COMPLEXITY_CEILING, _here("complexity:ceiling_rows"), _here("complexity:ceiling_headline")),
        Aggregate(
            tables.ERROR_ANALYSIS, _here("errors:error_rows"), _here("errors:headline"), reads=(tables.GENERATIONS,)
        ),
        Aggregate(
            tables.CALIBRATION,
            _here("calibration:calibration_rows"),
            _here("calibration:headline"),
            needs=("confidence",),
        ),
        Aggregate(
            tables.JUDGE_AGREEMENT,
            _here("agreement:agreement_rows"),
            _here("agreement:headline"),
            reads=(tables.JUDGEMENTS,),
            needs=("sql_equivalence", "equivalence_rung", "query_correctness"),
        ),
        Aggregate(
            tables.GOLD_EDITIONS,
            _here("editions:edition_rows"),
            _here("editions:headline"),
            reads=_EDITIONS,
            scores=True,
            knows_draws=True,
        ),
        Aggregate(
            tables.LABEL_CONFUSION,
            _here("labels:confusion_rows"),
            _here("labels:confusion_headline"),
            needs=_LABELS,
            listed=True,
        ),
        Aggregate(
            tables.LABEL_SCORES, _here("labels:score_rows"), _here("labels:scores_headline"), needs=_LABELS, listed=True
        ),
        Aggregate(
            tables.ACCURACY_BY_CONTRACT,
            _here("editions:contract_rows"),
            _here("editions:contract_headline"),
            needs=("relaxations", "insisted"),
        ),
    )
}
"""The shipped aggregates by table name; to add one, add a file in this folder and an entry here.

Its functions are imported when they are used: most commands compute no aggregate.
"""


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
