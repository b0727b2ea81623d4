"""DA-Code as tasks in worlds: the real sample where it is there, and small tasks for what becomes a case."""

import json
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.stages.checks.suite_files import measure
from eval_pipeline.tracks.importing import take_left_out
from eval_pipeline_plugins.data_sets.agent_tasks.dacode import read_dacode_tasks
from eval_pipeline_plugins.tracks.agent.running.blocking import close_worlds
from eval_pipeline_plugins.tracks.agent.track import TRACK
from eval_pipeline_tests import outside

SAMPLE = outside.PUBLIC / "agents" / "dacode"
TABLE = "name,total,note\nb,2,x\na,1,y\n"


def _read(
    folder: Path, func: str, result: dict[str, Any], **options: Any
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The cases of one task, and why it is none."""
    for part, files in (("source", {"in/a.csv": "x\n1\n", "README.md": "About."}), ("gold", {"result.csv": TABLE})):
        for name, content in files.items():
            path = folder / part / "t-1" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
    task = {"id": "t-1", "type": "Data Insight", "instruction": "Sum up into result.csv.", "hardness": "Hard"}
    told = {"id": "t-1", "func": [func], "result": [result], "options": [options]}
    (folder / "tasks.jsonl").write_text(json.dumps(task))
    (folder / "eval.jsonl").write_text(json.dumps(told))
    made = folder / "made"
    made.mkdir()
    return [dict(one) for one in read_dacode_tasks(folder / "tasks.jsonl", None, [folder], made)], take_left_out(made)


def test_a_task_becomes_a_world_and_its_file_is_expected(tmp_path: Path) -> None:
    ((case,), left_out) = _read(tmp_path, "compare_csv", {"file": ["result.csv"]}, condition_cols=[0, 1])
    assert left_out == {}
    assert (case["id"], case["world"], case["difficulty"], case["tags"]) == (
        "dacode_t_1",
        "dacode_t_1",
        3,
        ["data_insight"],
    )
    assert case["gold"] == [{"write_file": {"path": "result.csv", "text": TABLE}}, {"answer": "done"}]
    assert case["checks"] == [{"state": {"free": ["result.csv.note"]}}]
    read = TRACK.read_case(case, "dacode", "cases.jsonl", 1, TRACK.read_shared(tmp_path / "made", {}))
    assert read.context.world.listing() == {"in/a.csv", "README.md"}
    assert "README.md, in/a.csv" in read.context.world.description


def test_an_answer_in_json_is_expected_as_such(tmp_path: Path) -> None:
    ((case,), _) = _read(tmp_path, "compare_text", {"number": [{"top": ["Oslo"]}]})
    assert case["gold"] == [{"answer": {"top": ["Oslo"]}}]


@pytest.mark.parametrize(
    ("func", "result", "why"),
    [
        ("compare_image", {"file": ["result.png"]}, "compare_image cannot be judged here"),
        ("compare_csv", {"file": ["other.csv"]}, "the gold has no other.csv"),
    ],
)
def test_what_cannot_be_judged_is_left_out_by_name(tmp_path: Path, func: str, result: dict[str, Any], why: str) -> None:
    assert _read(tmp_path, func, result) == ([], {"t-1": why})


@outside.needs(SAMPLE)
def test_the_real_sample_is_fair(tmp_path: Path) -> None:
    cases = list(read_dacode_tasks(SAMPLE / "tasks.jsonl", None, [SAMPLE], tmp_path))
    assert set(take_left_out(tmp_path)) == {"plot-bar-004", "plot-line-015"}
    shared = TRACK.read_shared(tmp_path, {})
    read = [TRACK.read_case(case, "dacode", "cases.jsonl", 1, shared) for case in cases]
    try:
        assert [TRACK.check_gold(case) for case in read] == [[]] * 8
        fairness = measure(TRACK, [(case, frozenset()) for case in read])
    finally:
        close_worlds()
    assert fairness.cheats.tried > 50
    assert fairness.right.tried > 20
    assert (fairness.cheats.misjudged, fairness.right.misjudged) == ([], [])
