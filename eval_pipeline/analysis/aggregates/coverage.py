"""The aggregate `coverage`: numbers of turns planned, asked, answered, readable and scored (docs/statistics.md).

It also holds how many cases were left out and why (docs/reports.md#cases-left-out), and remarks on implausible answers
(docs/operations.md#configuration-or-model).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from eval_pipeline.analysis.aggregates.base import Row, Turns
from eval_pipeline.analysis.aggregates.case_counts import case_counts
from eval_pipeline.core.covering.coverage import Coverage, Reached, turns_reached
from eval_pipeline.core.covering.left_out import CaseCounts
from eval_pipeline.core.ids import json_text
from eval_pipeline.stages.checks.plausible import looked_at
from eval_pipeline.store.coverage import tries_of
from eval_pipeline.store.tables import TURN_RESULTS


def coverage_rows(turns: Turns) -> list[Row]:
    """Returns one row. Asked turns without a result are excluded by an override of the gold, and are not counted."""
    scored = turns.results["correct"]
    kept: Counter[Reached] = Counter()
    excluded = 0
    for part in turns.inputs.parts():
        results = part.read_within(TURN_RESULTS, ["turn_id", "sample"])
        places = set(zip(results["turn_id"].to_pylist(), results["sample"].to_pylist(), strict=True))
        reached = turns_reached(tries_of(part.read_within))
        own = Counter(found for place, found in reached.items() if place in places or not found.asked)
        kept, excluded = kept + own, excluded + len(reached) - own.total()
    planned = None if turns.planned is None else turns.planned - excluded
    counts = Coverage.of(kept.elements(), planned, len(scored) - scored.null_count).columns()
    seen = looked_at(turns.inputs)
    signs = seen.signs() if seen else []
    return [{**counts, **case_counts(turns).columns(), "implausible": json_text(signs) if signs else None}]


COUNTED = ("cases", "cases_in_suite", "unscored", "unscored_because", "drifted", "drifted_cases")
"""Columns of `case_counts` among the headline's numbers."""


def headline(rows: Sequence[Row]) -> Mapping[str, Any]:
    """Returns the coverage among the rows' numbers."""
    cases = CaseCounts.from_row(rows[0]).columns()
    return {
        **Coverage.from_row(rows[0]).columns(),
        **{name: cases[name] for name in COUNTED},
    }
