"""The aggregate `coverage`: numbers of turns planned, asked, answered, readable and scored (docs/statistics.md).

It also holds how many cases were left out and why (docs/reports.md#cases-left-out), and remarks on implausible answers
(docs/operations.md#configuration-or-model).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from eval_pipeline.analysis.aggregates.base import Row, Turns
from eval_pipeline.core.covering.coverage import Coverage, Reached, turns_reached
from eval_pipeline.core.covering.left_out import (
    BUDGET,
    EXCLUDED,
    NOT_ASKED,
    PART,
    UNDECIDED,
    UNREADABLE,
    UNSCORED,
    WRONG,
    WRONG_GOLD,
    CaseCounts,
    Cause,
)
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import CallErrorKind
from eval_pipeline.stages.checks.plausible import looked_at
from eval_pipeline.stages.scoring.gold import drifted_cases, unscored_turns
from eval_pipeline.store.coverage import tries_of
from eval_pipeline.store.tables import CASES, GENERATIONS, GOLD_OVERRIDES, LEFT_OUT_CASES, TURN_RESULTS
from eval_pipeline.workspace.asked.planned import planned_scope
from eval_pipeline.workspace.asked.scope import Scope


def case_counts(turns: Turns) -> CaseCounts:
    """Returns how many cases have a scored turn, and why the others have none.

    A case counts for the first cause that applies, in the order: wrong in the files, left out of the run's part of the
    suite, not asked for lack of budget, excluded by an override, with gold that does not hold, without a verdict.
    """
    results = turns.results.select(["case_id", "correct"])
    done = set(results.filter(pc.is_valid(results["correct"]))["case_id"].unique().to_pylist())
    unscored = unscored_turns(turns.inputs)
    reasons = Cause.of(UNSCORED, list(dict.fromkeys(f"{case}: {why}" for case, why in unscored)))
    found = (*_in_files(turns), *_in_run(turns, done, {case for case, _ in unscored}))
    causes = [cause for cause in found if cause.cases]
    in_suite = len(done) + sum(cause.cases for cause in causes)
    moved = drifted_cases(turns.inputs)
    drifted = Cause.of(UNSCORED, list(dict.fromkeys(moved)))
    return CaseCounts(len(done), in_suite, tuple(causes), len(unscored), reasons.told(), len(moved), drifted.told())


def _in_files(turns: Turns) -> Iterator[Cause]:
    """Yields what is left out of every evaluation of the suite."""
    rows = turns.read(LEFT_OUT_CASES).to_pylist()
    for cause in (WRONG, UNREADABLE, WRONG_GOLD):
        yield Cause.of(cause, [row["why"] for row in rows if row["cause"] == cause])


def _in_run(turns: Turns, done: set[str], unscored: set[str]) -> Iterator[Cause]:
    """Yields what is left out of this evaluation only; `done` are the cases with a scored turn."""
    asked = turns.read(GENERATIONS, ["case_id", "call_error"])
    refused = set(
        asked.filter(pc.equal(asked["call_error"], CallErrorKind.BUDGET.value))["case_id"].unique().to_pylist()
    )
    tried = set(asked["case_id"].unique().to_pylist())
    missing = [case for case in turns.read(CASES, ["case_id"])["case_id"].to_pylist() if case not in done]
    others = [case for case in missing if case in tried and case not in refused]
    excluded = {
        row["case_id"]: f"{row['case_id']}: {row['why']}"
        for row in turns.read(GOLD_OVERRIDES).to_pylist()
        if row["action"] == "excluded"
    }
    scope = Scope.from_label(planned_scope(turns.inputs.workspace, turns.partition))
    yield Cause.of(NOT_ASKED if scope.is_full else PART, [""] * sum(case not in tried for case in missing))
    yield Cause.of(BUDGET, [""] * sum(case in refused for case in missing))
    yield Cause.of(EXCLUDED, [excluded[case] for case in others if case in excluded])
    others = [case for case in others if case not in excluded]
    yield Cause.of(UNSCORED, [""] * sum(case in unscored for case in others))
    yield Cause.of(UNDECIDED, [case for case in others if case not in unscored])


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
