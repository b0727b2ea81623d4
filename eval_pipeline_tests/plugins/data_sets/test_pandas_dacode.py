"""DA-Code: the real sample where it is there, and small tasks of our own for what becomes a case and what does not."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.tracks.importing import take_left_out
from eval_pipeline_plugins.data_sets.pandas_code.dacode import read_dacode
from eval_pipeline_tests import outside

SAMPLE = outside.PUBLIC / "agents" / "dacode"
CSV = ["compare_csv"], [{"file": ["result.csv"]}]
TEXT = ["compare_text"], [{"number": [{"top city": ["Oslo"]}]}]
CHART = ["compare_image"], [{"file": ["result.png"]}]
PLOT = {"type": "bar", "labels": ["a"], "xtick_labels": ["x", "y"], "graph_title": "T", "x_label": "X"}


def _read(folder: Path, func: Any, result: Any, sources: dict[str, str], golds: dict[str, Any], **options: Any) -> Any:
    """The case of a task, and why it is none."""
    for part, files in (("source", sources), ("gold", golds)):
        place = folder / part / "t-1"
        place.mkdir(parents=True)
        for name, content in files.items():
            np.save(place / name, content) if name.endswith(".npy") else (place / name).write_text(content)
    task = {"id": "t-1", "type": "Data Insight", "instruction": 'Fill in {"Top city": [...]}.', "hardness": "Easy"}
    (folder / "tasks.jsonl").write_text(json.dumps(task))
    (folder / "eval.jsonl").write_text(json.dumps({"id": "t-1", "func": func, "result": result, "options": [options]}))
    made = folder / "made"
    made.mkdir()
    return list(read_dacode(folder / "tasks.jsonl", None, [folder], made)), take_left_out(made)


SOURCES = {"my data.csv": "a\n1\n", "README.md": "About.", "sample_result.csv": "a\n", "schema.png": ""}


@pytest.mark.parametrize(
    ("judged", "golds", "told"),
    [
        (
            CSV,
            {"result.csv": "a,b\n1,x\n2.5,\n"},
            {"output": "result.csv", "expected": {"a": [1, 2.5], "b": ["x", None]}},
        ),
        (TEXT, {}, {"output": "result.json", "expected": {"Top city": ["Oslo"]}}),
        (CHART, {"plot.json": json.dumps(PLOT), "result.npy": np.array([1.0, 2.0])}, {"output": "figure"}),
    ],
)
def test_a_task_becomes_a_case(tmp_path: Path, judged: Any, golds: Any, told: dict[str, Any]) -> None:
    ((case,), left_out) = _read(tmp_path, *judged, SOURCES, golds, ignore_order=True)
    assert (case["id"], case["tables"], case["features"], left_out) == (
        "dacode_t_1",
        ["my_data"],
        {"difficulty": "Easy"},
        {},
    )
    (turn,) = case["turns"]
    assert told.items() <= turn.items() and turn.get("ordered", False) is False
    assert turn["question"].endswith(
        "The file README.md:\n```\nAbout.\n```\n\nThe file sample_result.csv:\n```\na\n```"
    )
    assert (tmp_path / "made" / "tables" / "my_data.csv").read_text() == "a\n1\n"
    drawn = (
        "frame = pd.DataFrame({'a': [1.0, 2.0]}, index=['x', 'y'])\nresult = frame.plot.bar(legend=True, title='T', "
    )
    assert turn.get("code") in (None, f"{drawn}xlabel='X', ylabel='')")


@pytest.mark.parametrize(
    ("judged", "sources", "golds", "why"),
    [
        (CSV, SOURCES, {}, "the gold has no result.csv"),
        (CSV, SOURCES, {"result.csv": "a\n"}, "has no rows"),
        (CSV, {"README.md": ""}, {"result.csv": "a\n1\n"}, "there is no table among its files"),
        (CSV, SOURCES | {"big.sqlite": ""}, {"result.csv": "a\n1\n"}, "its input big.sqlite is no table of CSV"),
        ((["compare_ml"], []), SOURCES, {}, "compare_ml cannot be judged here"),
        ((["compare_csv", "compare_text"], []), SOURCES, {}, "several comparisons"),
        ((["compare_text"], [{"number": ["x"]}]), SOURCES, {}, "expected one JSON object"),
        (CHART, SOURCES, {}, "no plot.json"),
        (CHART, SOURCES, {"plot.json": '{"type": "line"}', "result.npy": np.zeros(2)}, "has no x values"),
        (CHART, SOURCES, {"plot.json": json.dumps(PLOT), "result.npy": np.zeros((2, 2))}, "do not fit its labels"),
    ],
)
def test_what_cannot_be_judged_is_left_out_by_cause(
    tmp_path: Path, judged: Any, sources: Any, golds: Any, why: str
) -> None:
    cases, left_out = _read(tmp_path, *judged, sources, golds)
    assert cases == [] and why in left_out["t-1"]


def test_without_evaluations_it_is_no_data_set(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text('{"id": "a", "instruction": "b"}')
    with pytest.raises(InputError, match=r"has no eval\.jsonl; --files names the folder"):
        list(read_dacode(tmp_path / "tasks.jsonl", None, [tmp_path], tmp_path))


@outside.needs(SAMPLE)
def test_of_the_sample_six_tasks_have_what_they_need(tmp_path: Path) -> None:
    cases = list(read_dacode(SAMPLE / "tasks.jsonl", None, [SAMPLE], tmp_path))
    assert len(cases) == 6
    assert take_left_out(tmp_path).keys() == {"data-sa-028", "data-sa-031", "data-sa-043", "plot-line-015"}
    shared = [case["tables"] for case in cases if "di_text" in case["id"]]
    assert shared == [["world_data_2023"]] * 2  # one table of two tasks
