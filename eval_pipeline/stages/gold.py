"""Turns that cannot be scored, because their gold does not hold (docs/gold.md#gold-that-cannot-be-scored)."""

from collections.abc import Mapping, Sequence

import pyarrow.compute as pc

from eval_pipeline.core.model import Evidence
from eval_pipeline.store.tables import GOLD_OVERRIDES, TURNS
from eval_pipeline.tracks.capabilities import NO_GOLD
from eval_pipeline.workspace.inputs import Inputs


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


def _problems(inputs: Inputs) -> dict[str, str]:
    found = published_problems(inputs)
    gold, track = inputs.gold, inputs.track
    for case in gold.cases.values():
        for turn in case.turns:
            found.pop(turn.id, None)
        found |= {turn.id: why for turn, why in track.check_gold(case)}
    for name, case in gold.alternatives.items():
        found.update((name, why) for turn, why in track.check_gold(case) if turn.id == name)
    return {name: why for name, why in found.items() if not gold.is_excluded(name)}


def gold_failure(evidence: Sequence[Evidence]) -> str | None:
    """Returns why the gold gave nothing that the answer could be compared with; None if it did."""
    return next((str(found.details.get("message")) for found in evidence if found.verdict == NO_GOLD), None)
