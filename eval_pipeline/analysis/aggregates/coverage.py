"""`coverage`: how many turns were planned, asked, answered, readable and scored (docs/statistics.md)."""

from collections.abc import Mapping, Sequence
from typing import Any

from eval_pipeline.analysis.aggregates.base import Aggregate, Row, Turns
from eval_pipeline.core.coverage import Coverage, turns_reached
from eval_pipeline.store.coverage import tries_of
from eval_pipeline.store.tables import COVERAGE as TABLE
from eval_pipeline.store.tables import GENERATIONS, RECOVERY_ATTEMPTS


def coverage_rows(turns: Turns) -> list[Row]:
    """One row. Turns that were asked and have no result are excluded by an override of the gold: in no figure."""
    scored = turns.results["correct"]
    places = set(zip(turns.results["turn_id"].to_pylist(), turns.results["sample"].to_pylist(), strict=True))
    reached = turns_reached(tries_of(turns.read))
    kept = [found for place, found in reached.items() if place in places or not found.asked]
    planned = None if turns.planned is None else turns.planned - (len(reached) - len(kept))
    return [dict(Coverage.of(kept, planned, len(scored) - scored.null_count).columns())]


def _headline(rows: Sequence[Row]) -> Mapping[str, Any]:
    return Coverage.from_row(rows[0]).columns()


COVERAGE = Aggregate(TABLE, coverage_rows, _headline, reads=(GENERATIONS, RECOVERY_ATTEMPTS))
