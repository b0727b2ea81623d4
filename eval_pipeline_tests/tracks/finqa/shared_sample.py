"""The conversations and recorded runs of `the public data`, scored as the stages do."""

import json
from functools import cache
from typing import Any

from eval_pipeline.core.model import Case
from eval_pipeline.tracks.finqa.importers.convfinqa import read_convfinqa
from eval_pipeline.tracks.finqa.track import TRACK
from eval_pipeline_tests.outside import FINQA, given

from .helpers import attempt_at, measured_conversation

Place = tuple[str, int]


@cache
def cases() -> list[Case]:
    source = given(FINQA / "convfinqa_dev_sample.json")
    return [TRACK.read_case(raw, "convfinqa", source.name, 1) for raw in read_convfinqa(source, None)]


@cache
def scored(run: str, history: str = "unknown") -> dict[Place, dict[str, Any]]:
    """Values and metrics of every turn that a run answered, by case and turn."""
    path = given(FINQA / f"predictions_claude-sonnet-4-6_run_{run}.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    answers = {(row["case_id"], row["turn_index"]): TRACK.from_recorded(row) for row in rows}
    found: dict[Place, dict[str, Any]] = {}
    for case in cases():
        said = [
            (turn, [attempt_at(case, turn, answers[case.id, turn.index], recorded=True)])
            for turn in case.turns
            if (case.id, turn.index) in answers
        ]
        measured = measured_conversation(case, said, history)
        found |= {(case.id, turn.index): values for (turn, _), values in zip(said, measured, strict=True)}
    return found
