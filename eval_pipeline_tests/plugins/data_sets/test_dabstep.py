"""DABstep as tasks in a world that they share."""

import json
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.tracks.importing import take_left_out
from eval_pipeline_plugins.data_sets.agent_tasks.dabstep import read_dabstep
from eval_pipeline_plugins.tracks.agent.track import TRACK

LIST = "Answer must be a list of values in comma separated list, eg: A, B, C."
TASKS = [
    {"task_id": "5", "question": "Which?", "guidelines": "Just the code.", "level": "easy", "answer": "NL"},
    {"task_id": 1464, "question": "Which IDs?", "guidelines": LIST, "level": "hard", "answer": "1, 2, 5"},
    {"task_id": "7", "question": "What fee?", "guidelines": "A number with 6 decimals.", "answer": "-0.120132"},
    {"task_id": "8", "question": "Which IDs?", "guidelines": LIST, "answer": "Not Applicable"},
    {"task_id": "9", "question": "How many?", "guidelines": "", "answer": ""},
]


def read(folder: Path, text: str) -> list[dict[str, Any]]:
    (folder / "context").mkdir()
    (folder / "context" / "fees.csv").write_text("id,fee\n1,2\n")
    (folder / "tasks.jsonl").write_text(text)
    (folder / "made").mkdir()
    return [dict(one) for one in read_dabstep(folder / "tasks.jsonl", None, [folder / "context"], folder / "made")]


def test_answers_are_expected_as_what_they_are(tmp_path: Path) -> None:
    cases = read(tmp_path, "".join(json.dumps(one) + "\n" for one in TASKS))
    assert [(one["id"], one["difficulty"], one["gold"][0]["answer"]) for one in cases] == [
        ("dabstep_5", 1, "NL"),
        ("dabstep_1464", 3, [1, 2, 5]),
        ("dabstep_7", 0, -0.120132),
        ("dabstep_8", 0, "Not Applicable"),
    ]
    assert cases[0]["task"] == "Which?\n\nJust the code."
    assert "not public" in take_left_out(tmp_path / "made")["9"]
    shared = TRACK.read_shared(tmp_path / "made", {})
    read_cases = [TRACK.read_case(case, "dabstep", "cases.jsonl", 1, shared) for case in cases]
    assert {one.context.world.listing() for one in read_cases} == {frozenset({"fees.csv"})}


@pytest.mark.parametrize(
    ("text", "place"),
    [('{"task_id": "5"}', ":1: question: "), ("{", ":1: "), ('{"task_id": "5", "question": ""}', ":1: question: ")],
)
def test_a_damaged_line_is_one_sentence(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(InputError) as raised:
        read(tmp_path, text)
    assert len(raised.value.problems) == 1 and f"tasks.jsonl{place}" in str(raised.value)
