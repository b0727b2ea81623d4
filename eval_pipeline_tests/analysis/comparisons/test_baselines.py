"""Baseline files: what is written is read again, compares alike, and is refused in one sentence where it is damaged."""

import json
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.analysis.comparisons.chosen.baselines import read_baseline, write_baseline
from eval_pipeline.analysis.comparisons.pairs import comparison_rows, is_refused
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_hash
from eval_pipeline_tests.analysis.comparisons.held import MADE, reader, side

A, B = side("a", "1" * 20 + "0" * 20), side("b", "1" * 40)


def test_a_file_compares_as_the_evaluation_that_was_written(tmp_path: Path) -> None:
    file = tmp_path / "main.json"
    write_baseline(file, [A, side("a", suite="other")])
    found, other = read_baseline(file)
    assert (found.evaluated, found.told) == (A.evaluated, A.told)
    assert found.evaluated.held is not None
    assert (found.evaluated.held.file, other.suite) == ("main.json", "other")
    (again,) = comparison_rows([(found.evaluated, B.evaluated)], reader())
    (before,) = comparison_rows([(A.evaluated, B.evaluated)], reader())
    assert again == before
    assert (again["fixed"], again["verdict"]) == (20, "b_better")


FORMS: dict[str, Any] = {
    "a column": lambda found: found["turns"].pop("asked"),
    "a row": lambda found: found["turns"]["correct"].pop(),
    "a digest": lambda found: found["turns"]["place"].insert(0, found["turns"]["place"].pop()[:-2] + "zz"),
    "a field": lambda found: found.update(further=1),
}
"""What is wrong with the form of an evaluation, while the checksum is right."""
FILES: dict[str, Any] = {
    "a verdict": lambda found: found["evaluations"][0]["turns"]["correct"].insert(0, 0.0),
    "no evaluations": lambda found: found.pop("evaluations"),
    "evaluations are a number": lambda found: found.update(evaluations=3, checksum=json_hash(3)),
    "a newer version": lambda found: found.update(eval_pipeline_baseline=2),
}


def changed(text: str, change: str) -> str:
    """The text of a file with one thing wrong."""
    if change == "cut off":
        return text[:-9]
    if change == "something else":
        return "[]"
    found = json.loads(text)
    if change in FORMS:
        FORMS[change](found["evaluations"][0])
        found["checksum"] = json_hash(found["evaluations"])
    else:
        FILES[change](found)
    return json.dumps(found)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("a verdict", "the baseline file is damaged"),
        ("a column", "the baseline file is damaged"),
        ("a row", "the baseline file is damaged"),
        ("a digest", "the baseline file is damaged"),
        ("a field", "the baseline file is damaged"),
        ("no evaluations", "the baseline file is damaged"),
        ("evaluations are a number", "the baseline file is damaged"),
        ("a newer version", "of another version of eval-pipeline (2)"),
        ("cut off", "it is not JSON"),
        ("something else", "is no baseline file; `eval-pipeline compare"),
    ],
)
def test_damaged_files_are_refused_in_one_sentence(change: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "main.json"
    write_baseline(file, [A])
    file.write_text(changed(file.read_text(), change))
    with pytest.raises(UsageError) as refused:
        read_baseline(file)
    assert expected in str(refused.value)
    assert str(refused.value).startswith(f"{file}: ")
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_baseline(tmp_path / "main.json")
    with pytest.raises(UsageError, match="cannot be written: "):
        write_baseline(tmp_path / "none" / "main.json", [A])


def test_what_was_scored_by_other_code_is_refused_with_what_helps() -> None:
    other = side("b", "1" * 40, made_with=MADE | {"scorer": "next"})
    (row,) = comparison_rows([(A.evaluated, other.evaluated)], reader())
    assert is_refused(row["reason"])
    assert "what main.json holds cannot be scored again; save it anew" in row["reason"]
