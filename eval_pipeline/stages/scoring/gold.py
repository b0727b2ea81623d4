"""Turns that cannot be scored, because their gold does not hold (docs/gold.md#gold-that-cannot-be-scored)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from eval_pipeline.core.ids import json_text, parse_json
from eval_pipeline.core.model import Case, Evidence, Turn
from eval_pipeline.stages.scoring.metric_runner import UNSCORED
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import GOLD_OVERRIDES, METRICS, TURN_RESULTS, TURNS
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.capabilities import GOLD_RESULTS, NO_GOLD
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.workspace import Workspace


def gold_problems(inputs: Inputs) -> Mapping[str, str]:
    """Returns turn id → why the gold that it is scored by does not hold.

    A turn with several right answers is in it if one of them does not hold: an answer that differs from the others may
    agree with that one.
    """
    return inputs.remembered((TURNS, GOLD_OVERRIDES), lambda: _problems(inputs), "gold that does not hold")


def published_problems(inputs: Inputs) -> dict[str, str]:
    """Returns turn id → why the gold in the suite's case files does not hold."""
    rows = inputs.read(TURNS, ["turn_id", "gold_problem"])
    rows = rows.filter(pc.is_valid(rows["gold_problem"]))
    return dict(zip(rows["turn_id"].to_pylist(), rows["gold_problem"].to_pylist(), strict=True))


def problems_of_cases(inputs: Inputs) -> Mapping[str, str]:
    """Returns turn id → why the gold does not hold, as published or as people have corrected it."""
    return inputs.remembered((TURNS, GOLD_OVERRIDES), lambda: _of_cases(inputs), "gold as corrected")


def _of_cases(inputs: Inputs) -> Mapping[str, str]:
    found = published_problems(inputs)
    for case in inputs.gold.cases.values():
        for turn in case.turns:
            found.pop(turn.id, None)
        found |= {turn.id: why for turn, why in inputs.track.check_gold(case)}
    return found


def _problems(inputs: Inputs) -> dict[str, str]:
    found, gold, track = {**problems_of_cases(inputs)}, inputs.gold, inputs.track
    for name, case in gold.alternatives.items():
        found.update((name, why) for turn, why in track.check_gold(case) if turn.id == name)
    return {name: why for name, why in found.items() if not gold.is_excluded(name)}


def drifted(turn: str, evidence: Sequence[Evidence], known: Mapping[str, Sequence[str | None]]) -> bool | None:
    """Returns whether a gold gave another result beside an answer than when the suite was read; None if unknown.

    Args:
        turn: the turn's id.
        evidence: what was found about the answer.
        known: `recorded_results`.
    """
    now = next((found.details[GOLD_RESULTS] for found in evidence if GOLD_RESULTS in found.details), None)
    before = known.get(turn)
    if now is None or before is None or len(now) != len(before):
        return None
    return any(one != other for one, other in zip(now, before, strict=True) if one and other)


def recorded_results(inputs: Inputs) -> Mapping[str, Sequence[str | None]]:
    """Returns turn id → hashes of what the accepted golds gave when the suite was read.

    Turns whose gold people have overridden are left out, as it has not been executed then.
    """

    def read() -> dict[str, Sequence[str | None]]:
        rows = inputs.read(TURNS, ["turn_id", "gold_results"])
        rows = rows.filter(pc.is_valid(rows["gold_results"]))
        pairs = zip(rows["turn_id"].to_pylist(), rows["gold_results"].to_pylist(), strict=True)
        return {turn: parse_json(text) for turn, text in pairs if turn not in inputs.gold.actions}

    return inputs.remembered((TURNS, GOLD_OVERRIDES), read, "results of golds")


def drifting(workspace: Workspace, suite: str, track: Track) -> Callable[[Case], list[str]]:
    """Returns which turns of a case have gold that gives another result now than when the suite was last recorded.

    Turns that are not on record, or whose gold or data have changed since, are left out.
    """
    key, known = RecordKey.of_suite(suite), dict[str, tuple[str, Any]]()
    if workspace.record.header(TURNS, key) is not None:
        for rows in workspace.record.row_groups(TURNS, key, ["turn_id", "gold", "gold_results"]):
            kept = rows.filter(pc.is_valid(rows["gold_results"])).to_pylist()
            known |= {row["turn_id"]: (row["gold"], parse_json(row["gold_results"])) for row in kept}

    def moved(turn: Turn) -> bool:
        gold, before = known[turn.id]
        pairs = zip(track.gold_results(turn), before, strict=False)
        return gold == json_text(track.gold_json(turn)) and any(one != other for one, other in pairs if one and other)

    return lambda case: [turn.id for turn in case.turns if turn.id in known and moved(turn)]


def unscored_turns(inputs: Inputs) -> list[tuple[str, str]]:
    """Returns the case of each turn and sample that was not scored because of its gold, with the reason."""
    if not inputs.read(TURN_RESULTS, ["correct"])["correct"].null_count:
        return []
    found: list[tuple[str, str]] = []
    for rows in inputs.rows_within(METRICS, ["case_id", "metric", "reason"]):
        is_primary = pc.equal(rows["metric"], inputs.track.primary_metric)
        kept = rows.filter(pc.and_(is_primary, pc.starts_with(rows["reason"], UNSCORED)))
        found += zip(kept["case_id"].to_pylist(), kept["reason"].to_pylist(), strict=True)
    return [(case, why.removeprefix(UNSCORED)) for case, why in found]


def drifted_cases(inputs: Inputs) -> list[str]:
    """Returns the case of each scored turn and sample whose gold has drifted."""
    rows = inputs.read(TURN_RESULTS, ["case_id", "correct", "gold_drifted"])
    found: list[str] = rows.filter(pc.and_(rows["gold_drifted"], pc.is_valid(rows["correct"])))["case_id"].to_pylist()
    return found


def gold_failure(evidence: Sequence[Evidence]) -> str | None:
    """Returns why the gold gave nothing that the answer could be compared with; None if it did."""
    return next((str(found.details.get("message")) for found in evidence if found.verdict == NO_GOLD), None)
