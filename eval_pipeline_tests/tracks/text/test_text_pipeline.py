"""Suites of the track go through the whole pipeline: samples, and tables of public data that were imported."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline_tests.outside import FINQA, SQL, given
from eval_pipeline_tests.support import Lab

MOODS = {"answer": {"form": "label", "labels": ["good", "bad", "mixed"]}}
REVIEWS = tuple(
    {"id": f"r{index}", "question": f"Review {index}", "answer": answer}
    for index, answer in enumerate(["good", "good", "bad", "mixed", "bad", "good"])
)
SAID = ["Answer: good", "Answer: bad", "bad", "good or mixed", "It is bad.", "good"]


@pytest.fixture
def moods(lab: Lab, tmp_path: Path) -> Lab:
    """A suite of labels that a recorded model has answered."""
    lab.suite("moods", REVIEWS, track="text", options=MOODS)
    rows = [{"case_id": f"r{index}", "turn_index": 0, "response": said} for index, said in enumerate(SAID)]
    file = tmp_path / "said.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = lab.cli("import", "predictions", str(file), "--suite", "moods", "--model-version", "them")
    assert said.code == 0, said.out
    assert "5 of 6 readable" in said.out
    lab.evaluate("moods", "them")
    return lab


def test_labels_have_a_confusion_table_and_macro_f1(moods: Lab) -> None:
    assert moods.sql("SELECT expected_label, answer_label, turns FROM label_confusion ORDER BY ALL") == [
        ("bad", "bad", 2),
        ("good", "bad", 1),
        ("good", "good", 2),
        ("mixed", None, 1),
    ]
    found = dict(moods.sql("SELECT label, f1 FROM label_scores"))
    # good: 2 * 2 / (3 + 2); bad: 2 * 2 / (2 + 3); mixed: expected once, never given
    assert found == pytest.approx({"macro": 1.6 / 3, "good": 0.8, "bad": 0.8, "mixed": 0.0})
    assert moods.sql("SELECT count(*) FROM text_turns WHERE failure_mode = 'wrong_label'") == [(1,)]
    assert moods.sql("SELECT count(*) FROM text_turns WHERE failure_mode = 'unreadable_answer'") == [(1,)]
    scored = {
        name
        for (name,) in moods.sql("SELECT DISTINCT metric FROM statistics WHERE metric LIKE '%\\_match' ESCAPE '\\'")
    }
    assert scored == {"choice_match"}, "a suite has only the metrics that it selects"
    page = Path(str(moods.stage("report", moods.inputs("moods", "them")).facts["page"]))
    assert "label confusion" in page.read_text().replace("_", " ").lower()


def bird() -> tuple[Path, dict[str, str]]:
    columns = {"id": "question_id", "question": "question", "answer": "difficulty", "evidence": "evidence"}
    return given(SQL / "bird_mini" / "mini_dev_sqlite_even.json"), columns


def finqa(folder: Path) -> tuple[Path, dict[str, str]]:
    found = json.loads(given(FINQA / "convfinqa_dev_sample.json").read_text())["dev"]
    file = folder / "numbers.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in first_turns(found)))
    return file, {"question": "asked", "answer": "right", "page": "page"}


def first_turns(entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        asked, right = entry["dialogue"]["conv_questions"][0], entry["dialogue"]["executed_answers"][0]
        if isinstance(right, float | int):
            yield {"asked": asked, "right": right, "page": entry["doc"]["pre_text"][:500]}


@pytest.mark.parametrize("source", ["bird", "finqa"])
def test_public_data_becomes_a_suite_whose_ends_hold(lab: Lab, tmp_path: Path, source: str) -> None:
    file, columns = bird() if source == "bird" else finqa(tmp_path)
    mapped = [word for ours, theirs in columns.items() for word in ("--map", f"{ours}={theirs}")]
    made = lab.cli("import", "text", str(file), "--suite", "public", "--limit", "12", *mapped)
    assert made.code == 0, made.out
    assert "12 cases with 12 turns" in made.out
    said = lab.cli("validate", "--suite", "public")
    assert said.code == 0
    assert "gold answers score 1.0 and no answer 0.0 on all 12 turns" in said.out
