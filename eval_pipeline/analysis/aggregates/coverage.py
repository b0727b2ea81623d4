"""`coverage`: how many turns were planned, asked, answered, readable and scored (docs/statistics.md)."""

from collections.abc import Mapping, Sequence
from typing import Any

from eval_pipeline.analysis.aggregates.base import Aggregate, Row, Turns
from eval_pipeline.core.coverage import Coverage, turns_reached
from eval_pipeline.store.coverage import tries_of
from eval_pipeline.store.tables import COVERAGE as TABLE
from eval_pipeline.store.tables import GENERATIONS, RECOVERY_ATTEMPTS


def coverage_rows(turns: Turns) -> list[Row]:
    """One row."""
    scored = turns.results["correct"]
    reached = turns_reached(tries_of(turns.read))
    return [dict(Coverage.of(reached.values(), turns.planned, len(scored) - scored.null_count).columns())]


def _headline(rows: Sequence[Row]) -> Mapping[str, Any]:
    return Coverage.from_row(rows[0]).columns()


COVERAGE = Aggregate(TABLE, coverage_rows, _headline, reads=(GENERATIONS, RECOVERY_ATTEMPTS))
